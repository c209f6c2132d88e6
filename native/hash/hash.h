// SPDX-License-Identifier: Apache-2.0
// XXH64 of a tensor's elements in row-major order. Several views may fold into the elements.
#pragma once

#include <cstdint>

#include "native/hash/xxh64.h"
#include "windlass/kernel.h"

namespace windlass {

// The input of a hash: `count` views of one shape, folded with `op` and cast through `wire` to
// `dtype`.
struct Hashed {
  const StridedView* views;
  uint32_t count;
  ReduceOp op;
  DType wire;
  DType dtype;
};

// Throws std::bad_alloc.
uint64_t hashOf(const Hashed& what, uint64_t seed);
// Adds the elements of one piece to `hash`, for a tensor in several pieces. Throws std::bad_alloc.
void addTo(const Hashed& what, Xxh64* hash);

}  // namespace windlass
