// SPDX-License-Identifier: Apache-2.0
// A run of bytes as a tensor, for kernels that move memory whatever its dtype.
#pragma once

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

template <typename T>
using Row =
    GlobalTensor<T, Shape<1, 1, 1, 1, DYNAMIC>, Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>>;

template <typename T>
WL_CORE_INLINE Row<T> row(T* data, uint64_t length) {
  const auto n = static_cast<int64_t>(length);
  return Row<T>(data, Shape<1, 1, 1, 1, DYNAMIC>(n),
                Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>(n, n, n, n));
}

// The rank that is `steps` (1 to ranks) to the right of `rank`.
WL_CORE inline uint32_t ringStep(const Launch& launch, uint32_t rank, uint32_t steps) {
  const uint32_t to = rank + steps;
  return to < launch.ranks ? to : to - launch.ranks;
}

// Staging for targets that move data through on-core memory.
using ByteTile = Tile<Loc::Vec, uint8_t, 1, 16384, BLayout::RowMajor, 1, DYNAMIC>;

// A run of bytes of one rank's input, and where it goes in another's output.
struct Run {
  uint8_t* out;
  const uint8_t* in;
  uint64_t bytes;

  WL_CORE_INLINE Row<uint8_t> target() const { return row(out, bytes); }
  WL_CORE_INLINE Row<const uint8_t> source() const { return row(in, bytes); }
};

// By the rank whose input is read, or by the one whose output is written. In place nothing moves.
WL_CORE_INLINE void put(const Run& run) {
  ByteTile tile;
  if (run.in != run.out && run.bytes > 0) TPUT(run.target(), run.source(), tile);
}
WL_CORE_INLINE void get(const Run& run) {
  ByteTile tile;
  if (run.in != run.out && run.bytes > 0) TGET(run.target(), run.source(), tile);
}

}  // namespace windlass
