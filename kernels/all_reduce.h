// SPDX-License-Identifier: Apache-2.0
// All-reduce: the reduction of all inputs becomes every rank's output.
//
// args     in   bytes
//          out  bytes; may be in (in place)
// phases   one-phase: each rank folds all inputs into its own output. In place only when inputs are
//          eager.
//          two-phase: reduce-scatter and all-gather in one pass: rank r folds its share of all
//          inputs and TPUTs it into every output. Only its owner reads and writes a share, so
//          in place is safe.
//          ring: ranks - 1 phases of partial sums, then ranks - 1 phases of copies, each from the
//          left. Bidirectional ring: one half of the elements goes right and the other half left.
// signals  one- and two-phase: ENTER of every rank before inputs are read; DONE of every rank
//          before return
//          ring: the neighbour's previous phase; DONE of every rank before return
// order    one- and two-phase: canonical, left fold in ascending rank. Ring: each chunk in ring
//          order.
#pragma once

#include "kernels/bytes.h"
#include "kernels/fold.h"
#include "kernels/pull.h"

namespace windlass {

struct AllReduceOnePhase : FoldItems<uint64_t{64} << 10> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t start = launch.pieceStart(block);
    foldRanks(
        launch, launch.pieceLength(block), 1,
        [&](uint32_t s) { return launch.in(s) + start; },
        [&](uint32_t) { return launch.out(rank) + start; });
  }
};

struct AllReduceTwoPhase : AllReduceOnePhase {
  // Pieces are dealt out: rank r owns pieces r, r + ranks, ...
  WL_CORE static void plan(Launch& launch) {
    const uint64_t share = launch.bytes / launch.ranks;
    launch.cut(share < (uint64_t{64} << 10) ? (share < 64 ? 64 : share) : uint64_t{64} << 10,
               1024 * launch.ranks);
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return launch.pieces > rank ? (launch.pieces - 1 - rank) / launch.ranks + 1 : 0;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t piece = rank + block * launch.ranks;
    const uint64_t start = launch.pieceStart(piece);
    foldRanks(
        launch, launch.pieceLength(piece), launch.ranks,
        [&](uint32_t s) { return launch.in(s) + start; },
        [&](uint32_t d) { return launch.out(d) + start; });
  }
};

// One direction of a ring over `length` bytes from `start` of the buffer, divided into one chunk
// per rank. `step` is 1 if sums travel to the right, and ranks - 1 if they travel to the left.
struct RingLane {
  uint64_t start;
  uint64_t length;
  uint32_t step;

  WL_CORE uint32_t from(const Launch& launch, uint32_t rank) const {
    return ringStep(launch, rank, launch.ranks - step);
  }

  WL_CORE void run(const Launch& launch, uint32_t rank, uint32_t k) const {
    const uint32_t n = launch.ranks;
    const uint32_t left = from(launch, rank);
    const bool reducing = k < n - 1;
    // This rank is at `place` in the direction of travel. It completes chunk place + 1 in the last
    // reducing phase.
    const uint32_t place = step == 1 ? rank : n - 1 - rank;
    const uint32_t chunk = (place + 3 * n - 1 - k) % n;
    const uint64_t size = wholeLines((length + n - 1) / n);
    const uint64_t first = chunk * size < length ? chunk * size : length;
    const uint64_t bytes = length - first < size ? length - first : size;
    auto* out = launch.out(rank) + start + first;
    const auto* passed = (k == 0 ? launch.in(left) : launch.out(left)) + start + first;
    if (!reducing) {
      get({out, passed, bytes});
      return;
    }
    const auto* own = launch.in(rank) + start + first;
    const double factors[] = {k == 0 ? launch.factor(left) : 1, launch.factor(rank)};
    fold(launch, bytes, passed, own, out, factors, k == n - 2);
  }

  // out = passed + own. The last fold of a mean divides. What is passed has its factor after the
  // first phase.
  WL_CORE static void fold(const Launch& launch, uint64_t bytes, const uint8_t* passed,
                           const uint8_t* own, uint8_t* out, const double* factors, bool last) {
    const auto elements = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
    const bool sums = launch.op == ReduceOp::kAvg && !last;
    const void* const terms[] = {passed, own};
    foldAlone(out, terms, 2, elements, launch.dtype, sums ? ReduceOp::kSum : launch.op,
              launch.ranks, factors);
  }
};

struct AllReduceRing : Items {
  WL_CORE static uint32_t phases(const Launch& launch) { return 2 * (launch.ranks - 1); }
  WL_CORE static void plan(Launch& launch) { launch.cut(launch.bytes + 1, 1); }
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return RingLane{0, 0, 1}.from(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t k) {
    RingLane{0, launch.bytes, 1}.run(launch, rank, k);
  }
};

struct AllReduceBidirectionalRing : AllReduceRing {
  WL_CORE static RingLane lane(const Launch& launch, uint32_t block) {
    const uint64_t half = wholeLines(launch.bytes / 2);
    const uint64_t first = half < launch.bytes ? half : launch.bytes;
    return block == 0 ? RingLane{0, first, 1}
                      : RingLane{first, launch.bytes - first, launch.ranks - 1};
  }
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 2; }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    return lane(launch, block).from(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    lane(launch, block).run(launch, rank, k);
  }
};

// Across processes; see kernels/pull.h.
struct AllReduceReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t k) {
    if (k == 1 && from == to) return kPullsNothing;
    const Part share = Part{0, launch.bytes}.piece(k == 0 ? to : from, launch.ranks);
    return {share.start, share.start, share.bytes};
  }
  static constexpr PullForm kForm = {2, {kFoldsApart, kPullsOutputs}, pulled, nullptr, true};
};

}  // namespace windlass
