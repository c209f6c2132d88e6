// SPDX-License-Identifier: Apache-2.0
// Access to files that another process of this host has open, by their numbers in that process.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/base/error.h"
#include "native/base/open_file.h"

namespace windlass {

// Name of a shared file for other processes: its number in the owner (-1: none) and its inode. The
// inode distinguishes it from a later file of that number.
struct SharedFile {
  int64_t number = -1;
  uint64_t inode = 0;
};

// Opens file `number` of the owner, a process of this host. Returns WL_PEER_LOST if the owner has
// ended or is ending. Returns WL_UNSUPPORTED if its process number is not valid here, for example
// in another PID namespace. `flags` are those of open().
Code openShared(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error,
                int flags = O_RDWR);
// Lists the numbers of at most `most` files of shareMemory() that a process of this host has open.
// Throws std::bad_alloc.
Code listShared(const wl_process_t& owner, size_t most, std::vector<int32_t>* numbers,
                wl_error_t* error);

// Distinguishes a file from a later one of the same number; 0 if the file is not open.
uint64_t inodeOf(int file);

}  // namespace windlass
