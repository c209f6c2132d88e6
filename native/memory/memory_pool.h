// SPDX-License-Identifier: Apache-2.0
// Pieces of one rank's part of a window, of any size, taken and given back by that rank alone. A
// page of the part has memory as long as a piece lies in it.
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

  // For `bytes`, whole pages of which none has memory. Throws std::bad_alloc.
  explicit MemoryPool(uint64_t bytes);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Where they lie; before any is taken.
  void layAt(void* base) { base_ = static_cast<unsigned char*>(base); }

  // `bytes`, zeroed and aligned, from where they fit best. WL_RESOURCE says what was asked for and
  // what is free, here or on this machine; then nothing is taken.
  Code take(uint64_t bytes, void** memory, wl_error_t* error);
  // What take() gave; takes no memory itself. WL_INVALID_ARGUMENT where no piece that is taken
  // begins there.
  Code giveBack(void* memory, wl_error_t* error);
  // Of pieces that are taken, with what alignment costs.
  uint64_t used() const;

 private:
  // Of what is free, first the smallest, then the first.
  using BySize = std::set<std::pair<uint64_t, uint64_t>>;  // bytes, offset
  // A piece that is taken, or what lies free between two.
  struct Extent {
    uint64_t bytes;
    BySize::node_type entry;  // of one that is taken, for bySize_; empty while it is there

    bool isFree() const { return entry.empty(); }
  };
  using Extents = std::map<uint64_t, Extent>;  // by offset, side by side
  struct Span {
    uint64_t start;
    uint64_t end;
  };

  // Pages in which [start, end) and nothing else lies, which is part of what is free, or will be.
  static Span pagesOf(Span piece, Span free);
  void zero(Span piece, Span fresh);
  Code full(uint64_t bytes, wl_error_t* error) const;

  const uint64_t bytes_;
  unsigned char* base_ = nullptr;
  mutable std::mutex mutex_;  // guards what follows, and what pages have
  Extents extents_;
  BySize bySize_;
  uint64_t used_ = 0;
  uint64_t allowed_ = 0;  // bytes that may be reserved before a look at what this machine has free
};

}  // namespace windlass
