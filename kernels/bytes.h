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

// Staging buffer for targets that move data through on-core memory: two tiles in turn. One is
// filled while the other is emptied.
using ByteTile = Tile<TileType::Vec, uint8_t, 1, 16384, BLayout::RowMajor, 1, DYNAMIC>;
constexpr uint64_t kPing = 0;
constexpr uint64_t kPong = 16384;

// Returns the number of valid columns of a tile for rows of `rowBytes` bytes. If the tile holds a
// whole row, TPUT and TGET use the tile as it is.
WL_CORE_INLINE int64_t staged(uint64_t rowBytes) {
  return rowBytes < ByteTile::Cols ? static_cast<int64_t>(rowBytes) : ByteTile::Cols;
}

template <typename Dst, typename Src>
WL_CORE_INLINE void putStaged(Dst& to, Src& from, uint64_t rowBytes) {
  ByteTile ping(staged(rowBytes));
  ByteTile pong(staged(rowBytes));
  TASSIGN(ping, kPing);
  TASSIGN(pong, kPong);
  comm::TPUT(to, from, ping, pong);
}
template <typename Dst, typename Src>
WL_CORE_INLINE void getStaged(Dst& to, Src& from, uint64_t rowBytes) {
  ByteTile ping(staged(rowBytes));
  ByteTile pong(staged(rowBytes));
  TASSIGN(ping, kPing);
  TASSIGN(pong, kPong);
  comm::TGET(to, from, ping, pong);
}

// A run of bytes of one rank's input, and its destination in another rank's output.
struct Run {
  uint8_t* out;
  const uint8_t* in;
  uint64_t bytes;
};

// put: called by the rank whose input is read. get: called by the rank whose output is written. In
// place nothing moves.
WL_CORE_INLINE void put(const Run& run) {
  if (run.in == run.out || run.bytes == 0) return;
  Row<uint8_t> to = row(run.out, run.bytes);
  Row<const uint8_t> from = row(run.in, run.bytes);
  putStaged(to, from, run.bytes);
}
WL_CORE_INLINE void get(const Run& run) {
  if (run.in == run.out || run.bytes == 0) return;
  Row<uint8_t> to = row(run.out, run.bytes);
  Row<const uint8_t> from = row(run.in, run.bytes);
  getStaged(to, from, run.bytes);
}

}  // namespace windlass
