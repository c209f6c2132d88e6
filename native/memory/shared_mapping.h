// SPDX-License-Identifier: Apache-2.0
// A mapping of memory that processes of one host share.
#pragma once

#include <cstdint>
#include <mutex>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/memory/shared_files.h"

namespace windlass {

// Thread-safe: the first thread of the process makes the mapping.
class SharedMapping {
 public:
  ~SharedMapping();

  // Makes and maps memory as shareMemory() does, unless memory is mapped. Other processes can open
  // it while file() is open.
  Code make(uint64_t bytes, wl_error_t* error, uint64_t later = 0);
  // Maps a whole file, unless one is mapped. Returns WL_INVALID_ARGUMENT if the file may shrink,
  // since touching the lost pages would end the process.
  Code map(int32_t file, wl_error_t* error);
  // Maps the owner's file `number`, unless a file is mapped. Returns WL_RESOURCE if it is not the
  // file of *inode. If `inode` is nullptr, the caller checks afterwards that the number still named
  // that file. `flags`: see openShared().
  Code map(const wl_process_t& owner, int32_t number, wl_error_t* error,
           const uint64_t* inode = nullptr, int flags = O_RDWR);
  // Maps a file that the owner may have closed. Returns WL_RESOURCE if it was closed.
  Code map(const wl_process_t& owner, const SharedFile& named, wl_error_t* error) {
    return map(owner, static_cast<int32_t>(named.number), error, &named.inode);
  }
  // Maps the owner's file `number` for reading only. Opening a pipe would otherwise wait for a
  // writer.
  Code mapToRead(const wl_process_t& owner, int32_t number, wl_error_t* error) {
    return map(owner, number, error, nullptr, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  }
  // Number of the mapped file in this process until closeFile(), otherwise -1. Processes that may
  // inspect this process find the memory by that number.
  int32_t file() const;
  SharedFile named() const;
  void closeFile();

  void* memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Code mapWhole(OpenFile file, int protection, wl_error_t* error);

  mutable std::mutex mutex_;
  OpenFile file_;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace windlass
