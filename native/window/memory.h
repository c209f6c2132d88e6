// SPDX-License-Identifier: Apache-2.0
// Memory that Windlass owns: aligned blocks, mappings, and the segments of in-process windows.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

constexpr uint64_t kPage = 4096;

// Zeroed, aligned to max(64, alignment). `alignment` is 0 or a power of two.
Code allocateMemory(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error);
void freeMemory(void* memory);

// Zeroed pages of their own, which go back to the system when they are unmapped and take memory as
// they are written; nullptr when there are none, and errno says why. `bytes` is not 0.
void* mapMemory(uint64_t bytes);
void unmapMemory(void* memory, uint64_t bytes);

// The memory of an in-process window: one anonymous mapping with a segment for each rank, every
// segment page-aligned and zeroed.
class Segments {
 public:
  static Code map(uint64_t bytes, uint32_t ranks, Segments** segments, wl_error_t* error);
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  uint64_t bytes() const { return bytes_; }
  void* address(uint32_t rank) const { return static_cast<char*>(base_) + rank * stride_; }

 private:
  Segments(void* base, uint64_t bytes, uint64_t stride, uint64_t mapped)
      : base_(base), bytes_(bytes), stride_(stride), mapped_(mapped) {}

  void* base_;
  uint64_t bytes_;
  uint64_t stride_;
  uint64_t mapped_;
};

}  // namespace windlass
