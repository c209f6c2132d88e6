// SPDX-License-Identifier: Apache-2.0
// The kernels that the pages on kernels have beside the ring shift of examples/kernels: one with
// flags, and one of two phases.
#include "windlass/kernel_library.h"

using namespace windlass;

using Row = GlobalTensor<float, Shape<1, 1, 1, 1, DYNAMIC>,
                         Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>>;
using Staging = Tile<TileType::Vec, float, 1, 4096, BLayout::RowMajor, 1, DYNAMIC>;

WL_CORE static Row row(float* data, int64_t n) {
  return Row(data, Shape<1, 1, 1, 1, DYNAMIC>(n),
             Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>(n, n, n, n));
}

WL_CORE static uint32_t rightOf(const Launch& launch, uint32_t rank) {
  return (rank + 1) % launch.ranks;
}
WL_CORE static uint32_t leftOf(const Launch& launch, uint32_t rank) {
  return (rank + launch.ranks - 1) % launch.ranks;
}

// Twice what a rank holds goes to its right neighbour, 4,096 elements at a time.
struct DoubledShift : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32),
      distributed("out", DType::kF32).written().sizedLike(0),
  };

  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return rightOf(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const auto n = static_cast<int64_t>(launch.argument(0).elements);
    float* in = launch.argument(0).at<float>(rank);
    float* out = launch.argument(1).at<float>(rightOf(launch, rank));
    for (int64_t at = 0; at < n; at += Staging::Cols) {
      const int64_t length = n - at < Staging::Cols ? n - at : Staging::Cols;
      Row from = row(in + at, length);
      Row to = row(out + at, length);
      Staging tile(length);
      TASSIGN(tile, 0);
      if (at > 0) wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
      TLOAD(tile, from);
      set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
      wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
      TMULS(tile, tile, 2.0f);
      set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
      wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
      TSTORE(to, tile);
      if (at + length < n) set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
  }
};

// Each rank sends its data to the rank to its right, which sends it to the next one.
struct TwoSteps : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32),
      distributed("out", DType::kF32).written(),
  };

  static const char* refuses(const Launch& launch) {
    const bool fits = launch.argument(1).elements == 2 * launch.argument(0).elements;
    return fits ? nullptr : "out must have twice as many elements as in";
  }
  WL_CORE static uint32_t phases(const Launch&) { return 2; }
  // Phase 0 writes to the right; phase 1 reads what phase 0 of the left one wrote.
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t phase) {
    return phase == 0 ? rightOf(launch, rank) : leftOf(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t phase) {
    const auto n = static_cast<int64_t>(launch.argument(0).elements);
    if (n == 0) return;
    const Argument& out = launch.argument(1);
    Row from = row(phase == 0 ? launch.argument(0).at<float>(rank) : out.at<float>(rank), n);
    Row to = row(out.at<float>(rightOf(launch, rank)) + phase * n, n);
    Staging staging(n < Staging::Cols ? n : Staging::Cols);
    TASSIGN(staging, 0);
    comm::TPUT(to, from, staging);
  }
};

WINDLASS_KERNEL_LIBRARY(libraryKernel<DoubledShift>("doubled_shift"),
                        libraryKernel<TwoSteps>("two_steps"))
