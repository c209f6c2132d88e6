// SPDX-License-Identifier: Apache-2.0
// Ring shifts with one mistake each, which the checked targets refuse.
// docs/reference/kernel-mistakes.md has the mistake, and what is said of it.
//
// args     in, out, steps as of the ring shift of examples/kernels
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

  WL_CORE static uint32_t target(const Launch& launch, uint32_t rank) {
    return (rank + static_cast<uint32_t>(launch.argument(2).scalar<int32_t>())) % launch.ranks;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return target(launch, rank);
  }
  WL_CORE static int64_t count(const Launch& launch) {
    return static_cast<int64_t>(launch.argument(0).elements);
  }
  WL_CORE static Row source(const Launch& launch, uint32_t rank) {
    return row(launch.argument(0).at<float>(rank), count(launch));
  }
  WL_CORE static Row destination(const Launch& launch, uint32_t rank) {
    return row(launch.argument(1).at<float>(target(launch, rank)), count(launch));
  }
};

// A tile that holds all has to have its size.
struct WholeTiles : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging ping(Staging::Cols);
    Staging pong(Staging::Cols);
    TASSIGN(ping, 0);
    TASSIGN(pong, Staging::Cols * sizeof(float));
    comm::TPUT(to, from, ping, pong);
  }
};

// An offset counts bytes.
struct OffsetInElements : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const int64_t n = count(launch);
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging ping(n < Staging::Cols ? n : Staging::Cols);
    Staging pong(n < Staging::Cols ? n : Staging::Cols);
    TASSIGN(ping, 0);
    TASSIGN(pong, Staging::Cols);
    comm::TPUT(to, from, ping, pong);
  }
};

// The peer's part has as many elements as `in`, not as many for each rank.
struct PastTheEnd : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const int64_t n = count(launch);
    Row from = source(launch, rank);
    Row to = row(launch.argument(1).at<float>(target(launch, rank)) + rank * n, n);
    Staging ping(n < Staging::Cols ? n : Staging::Cols);
    TASSIGN(ping, 0);
    comm::TPUT(to, from, ping);
  }
};

// Twice what it loads goes to the peer. TSTORE may run while TMULS does.
struct NoFlag : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging tile(count(launch));
    TASSIGN(tile, 0);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, 2.0f);
    TSTORE(to, tile);
  }
};

// Phase 1 sends on the data of phase 0. An item has to need the rank that wrote its input. This one
// names the rank to which it writes.
struct WrongNeed : RingShift {
  WL_CORE static uint32_t phases(const Launch&) { return 2; }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return target(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t k) {
    const int64_t n = count(launch) / 2;
    const Argument& out = launch.argument(1);
    Row from = k == 0 ? row(launch.argument(0).at<float>(rank), n) : row(out.at<float>(rank), n);
    Row to = row(out.at<float>(target(launch, rank)) + k * n, n);
    Staging ping(n < Staging::Cols ? n : Staging::Cols);
    TASSIGN(ping, 0);
    comm::TPUT(to, from, ping);
  }
};

// The peer that it writes to may not have entered.
struct NeedsNobody : RingShift {
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kNobody; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging ping(count(launch));
    TASSIGN(ping, 0);
    comm::TPUT(to, from, ping);
  }
};

// A rank returns before its left neighbour has written what it returns with.
struct LeavesAtOnce : RingShift {
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging ping(count(launch));
    TASSIGN(ping, 0);
    comm::TPUT(to, from, ping);
  }
};

// A kernel writes what its table says that it writes, and nothing else.
struct StoresToInput : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row own = source(launch, rank);
    Staging tile(count(launch));
    TASSIGN(tile, 0);
    TLOAD(tile, own);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, 2.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(own, tile);
  }
};

// Both items of a rank write the same.
struct SameFromBoth : RingShift {
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 2; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Row from = source(launch, rank);
    Row to = destination(launch, rank);
    Staging ping(count(launch));
    TASSIGN(ping, 0);
    comm::TPUT(to, from, ping);
  }
};

// Twice what it loads goes to the peer, by one tile and no flag back, again and again.
struct OneTileInALoop : RingShift {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    for (int64_t at = 0; at < count(launch); at += 64) {
      Row from = row(launch.argument(0).at<float>(rank) + at, 64);
      Row to = row(launch.argument(1).at<float>(target(launch, rank)) + at, 64);
      Staging tile(64);
      TASSIGN(tile, 0);
      TLOAD(tile, from);
      TSTORE(to, tile);
    }
  }
};

WINDLASS_KERNEL_LIBRARY(libraryKernel<NeedsNobody>("needs_nobody"),
                        libraryKernel<LeavesAtOnce>("leaves_at_once"),
                        libraryKernel<WholeTiles>("whole_tiles"),
                        libraryKernel<OffsetInElements>("offset_in_elements"),
                        libraryKernel<PastTheEnd>("past_the_end"),
                        libraryKernel<NoFlag>("no_flag"),
                        libraryKernel<WrongNeed>("wrong_need"),
                        libraryKernel<StoresToInput>("stores_to_input"),
                        libraryKernel<SameFromBoth>("same_from_both"),
                        libraryKernel<OneTileInALoop>("one_tile_in_a_loop"))
