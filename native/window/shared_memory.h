// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host map: files that have no name, so that nothing stays behind when
// the last of them is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
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

// Zeroed memory of `bytes`, rounded up to whole pages, reserved but for the last `later` bytes; it
// can neither shrink nor grow. WL_RESOURCE says what was asked for and what is free.
Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error, uint64_t later = 0);
// Reserves whole pages of what was left for later, as they are mapped here, before anybody touches
// them. WL_RESOURCE likewise. `allowed`: of reservations in a row, what may be reserved before
// another look at what is free; 0 before the first.
Code reserveShared(void* memory, uint64_t bytes, wl_error_t* error, uint64_t* allowed = nullptr);
// Gives whole pages back to the system, in all processes that map them: they are zero then, and as
// they were before they were reserved.
void releaseShared(void* memory, uint64_t bytes);
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

// Shared memory as this process maps it, for whichever of its threads comes first.
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

// Bytes of memory that this process may still take, and which limit says so. Of a cgroup, what it
// keeps of files and can drop counts as free.
struct FreeMemory {
  uint64_t bytes;
  char limit[256];

  static FreeMemory look();
};

}  // namespace windlass
