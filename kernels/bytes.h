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
inline Row<T> row(T* data, uint64_t length) {
  const auto n = static_cast<int64_t>(length);
  return Row<T>(data, Shape<1, 1, 1, 1, DYNAMIC>(n),
                Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>(n, n, n, n));
}

// The rank that is `steps` (1 to ranks) to the right of `rank`.
inline uint32_t ringStep(const Launch& launch, uint32_t rank, uint32_t steps) {
  const uint32_t to = rank + steps;
  return to < launch.ranks ? to : to - launch.ranks;
}

// Staging for targets that move data through on-core memory.
using ByteTile = Tile<Loc::Vec, uint8_t, 1, 16384, BLayout::RowMajor, 1, DYNAMIC>;

// Who runs a move: the rank whose input is read, or the rank whose output is written.
enum class Way { kPut, kGet };

// Moves a run of bytes from one rank's input to another's output, past the caches where what the
// operation moves outgrows them.
template <Way way>
inline void moveRun(const Launch& launch, uint8_t* out, const uint8_t* in, uint64_t length) {
  if (launch.streams) {
    static constexpr int64_t kUnitStride = 1;
    const auto n = static_cast<int64_t>(length);
    const StridedView from = {const_cast<uint8_t*>(in), DType::kU8, 1, &n, &kUnitStride};
    TMOVE_CVT({out, DType::kU8, 1, &n, &kUnitStride}, from, DType::kU8, Stores::kStreaming);
    return;
  }
  ByteTile tile;
  if constexpr (way == Way::kPut) {
    TPUT(row(out, length), row(in, length), tile);
  } else {
    TGET(row(out, length), row(in, length), tile);
  }
}

}  // namespace windlass
