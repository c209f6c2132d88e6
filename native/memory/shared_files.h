// SPDX-License-Identifier: Apache-2.0
// Files that another process of this host has open, by their numbers there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/base/error.h"
#include "native/base/open_file.h"

namespace windlass {

// A file as its owner names it to others: its number there, -1 for none, and what tells it from one
// that has that number later.
struct SharedFile {
  int64_t number = -1;
  uint64_t inode = 0;
};

// What the owner, a process of this host, has open as `number`. WL_PEER_LOST: it has ended, or has
// begun to; WL_UNSUPPORTED: its numbers mean nothing here.
Code openShared(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error);
// The same for a process that is to read it alone, whatever it is.
Code openToRead(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error);
// The numbers of all that a process of this host has open that shareMemory() made: at most `most`
// of them. Throws std::bad_alloc.
Code listShared(const wl_process_t& owner, size_t most, std::vector<int32_t>* numbers,
                wl_error_t* error);

// Tells a file from one that has its number later; 0 where it is not open.
uint64_t inodeOf(int file);

}  // namespace windlass
