// SPDX-License-Identifier: Apache-2.0
// Ring shift: what each rank holds goes to the rank that is `steps` further.
//
// args     in     f32, a rank's own
//          out    f32 in a window, as many; written
//          steps  i32, 0 or more
// phases   one: TPUT of `in` into the peer's `out`
// signals  ENTER of the peer before its out is written; every rank leaves after all, since its out
//          is written by another
// order    the executor releases what an item moved, and acquires it for who waits for it
#include "windlass/kernel_library.h"

using namespace windlass;

using Row = GlobalTensor<float, Shape<1, 1, 1, 1, DYNAMIC>,
                         Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>>;
using Staging = Tile<TileType::Vec, float, 1, 4096, BLayout::RowMajor, 1, DYNAMIC>;

WL_CORE static Row row(float* data, int64_t n) {
  return Row(data, Shape<1, 1, 1, 1, DYNAMIC>(n),
             Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>(n, n, n, n));
}

struct RingShift : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32),
      distributed("out", DType::kF32).written().sizedLike(0),
      scalar("steps", DType::kI32),
  };

  static const char* refuses(const Launch& launch) {
    return launch.argument(2).scalar<int32_t>() < 0 ? "steps is negative" : nullptr;
  }
  WL_CORE static uint32_t target(const Launch& launch, uint32_t rank) {
    return (rank + static_cast<uint32_t>(launch.argument(2).scalar<int32_t>())) % launch.ranks;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return target(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const auto n = static_cast<int64_t>(launch.argument(0).elements);
    if (n == 0) return;
    Row from = row(launch.argument(0).at<float>(rank), n);
    Row to = row(launch.argument(1).at<float>(target(launch, rank)), n);
    Staging ping(n < Staging::Cols ? n : Staging::Cols);
    Staging pong(n < Staging::Cols ? n : Staging::Cols);
    TASSIGN(ping, 0);
    TASSIGN(pong, Staging::Cols * sizeof(float));
    comm::TPUT(to, from, ping, pong);
  }
};

WINDLASS_KERNEL_LIBRARY(libraryKernel<RingShift>("ring_shift"))
