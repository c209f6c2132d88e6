// SPDX-License-Identifier: Apache-2.0
// Allocates pieces of any size from one rank's part of a window. Only that rank allocates and
// frees. A page of the part has memory while a piece lies in it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "native/base/error.h"

namespace windlass {

class MemoryPool {
 public:
  static constexpr uint64_t kAlignment = 64;

  // `bytes` is a multiple of the page size. No page has memory yet. Throws std::bad_alloc.
  explicit MemoryPool(uint64_t bytes);

  // Sets the address of the part. Call before the first take().
  void layAt(void* base) { base_ = static_cast<unsigned char*>(base); }

  // Allocates `bytes` bytes, zeroed and aligned, from the best fit. WL_RESOURCE states the
  // requested size and what is free in the pool or on this machine; then nothing is allocated.
  Code take(uint64_t bytes, void** memory, wl_error_t* error);
  // Frees a piece of take() without allocating memory. Returns WL_INVALID_ARGUMENT if no allocated
  // piece begins there.
  Code giveBack(void* memory, wl_error_t* error);
  // Bytes of allocated pieces, including alignment.
  uint64_t used() const;

 private:
  // Free extents, sorted by size and then by offset.
  using BySize = std::set<std::pair<uint64_t, uint64_t>>;  // bytes, offset
  // An allocated piece, or the free extent between two.
  struct Extent {
    uint64_t bytes;
    BySize::node_type entry;  // for bySize_ if allocated; empty if free

    bool isFree() const { return entry.empty(); }
  };
  using Extents = std::map<uint64_t, Extent>;  // by offset, contiguous
  struct Span {
    uint64_t start;
    uint64_t end;
  };

  // Pages that only `piece` touches. `free` is the free extent that holds `piece` before an
  // allocation or after a free.
  static Span pagesOf(Span piece, Span free);
  void zero(Span piece, Span fresh);
  Code full(uint64_t bytes, wl_error_t* error) const;

  const uint64_t bytes_;
  unsigned char* base_ = nullptr;
  mutable std::mutex mutex_;  // guards the members below and the pages' memory
  Extents extents_;
  BySize bySize_;
  uint64_t used_ = 0;
  uint64_t allowed_ = 0;  // bytes that may be reserved before the next check of free memory
};

}  // namespace windlass
