// SPDX-License-Identifier: Apache-2.0
// XXH64 of a tensor's elements in row-major order, as they lie or as several fold into them.
#pragma once

#include <cstdint>

#include "native/hash/xxh64.h"
#include "windlass/kernel.h"

namespace windlass {

// What is hashed: `count` views of one shape, folded with `op`, through `wire` to `dtype`.
struct Hashed {
  const StridedView* views;
  uint32_t count;
  ReduceOp op;
  DType wire;
  DType dtype;
};

// Throws std::bad_alloc.
uint64_t hashOf(const Hashed& what, uint64_t seed);
// The same of what comes in pieces: `hash` takes the elements of one. Throws std::bad_alloc.
void addTo(const Hashed& what, Xxh64* hash);

}  // namespace windlass
