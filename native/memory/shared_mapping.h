// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share, as one of them maps it.
#pragma once

#include <cstdint>
#include <mutex>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/memory/shared_files.h"

namespace windlass {

// For whichever of the process's threads comes first.
class SharedMapping {
 public:
  SharedMapping() = default;
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  // Makes it as shareMemory() does, unless that was done; others open it while file() is open.
  Code make(uint64_t bytes, wl_error_t* error, uint64_t later = 0);
  // Maps a file whole, unless one is. WL_INVALID_ARGUMENT: it may shrink, which would end whoever
  // touches it.
  Code map(int32_t file, wl_error_t* error);
  // Maps what the owner has open as `number`, unless a file is mapped; the caller sees afterwards
  // whether the number was that file's until then.
  Code map(const wl_process_t& owner, int32_t number, wl_error_t* error);
  // The same of a file that the owner may have closed meanwhile: WL_RESOURCE then.
  Code map(const wl_process_t& owner, const SharedFile& named, wl_error_t* error);
  // The same, to be read alone.
  Code mapToRead(const wl_process_t& owner, int32_t number, wl_error_t* error);
  // What is mapped, as this process has it open until closeFile(); else -1. By it others that may
  // look into this process find the memory, too.
  int32_t file() const;
  SharedFile named() const;
  void closeFile();

  void* memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Code mapWhole(OpenFile file, int protection, wl_error_t* error);
  Code mapNumber(const wl_process_t& owner, int32_t number, const SharedFile* named,
                 wl_error_t* error);

  mutable std::mutex mutex_;
  OpenFile file_;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace windlass
