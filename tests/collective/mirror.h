// SPDX-License-Identifier: Apache-2.0
// Mirror: the input of rank ranks - 1 - r becomes the output of rank r.
//
// args     in, out  bytes, never the same
// phases   one: TGET of a piece of the mirrored rank's input
// signals  ENTER of the mirrored rank before its input is read; its DONE before return, since it
//          reads this rank's input
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/bytes.h"
#include "kernels/pull.h"
#include "windlass/kernel.h"

namespace windlass {

struct Mirror {
  WL_CORE static uint32_t mirrored(const Launch& launch, uint32_t rank) {
    return launch.ranks - 1 - rank;
  }
  WL_CORE static constexpr uint32_t phases(const Launch&) { return 1; }
  static constexpr bool kEager = false;
  WL_CORE static void plan(Launch& launch) { launch.cut(uint64_t{64} << 10, 256); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return mirrored(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t start = launch.pieceStart(block);
    get({launch.out(rank) + start, launch.in(mirrored(launch, rank)) + start,
         launch.pieceLength(block)});
  }
  WL_CORE static uint32_t leavesAfter(const Launch& launch, uint32_t rank) {
    return mirrored(launch, rank);
  }
};

// Across processes; see kernels/pull.h.
struct MirrorReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    if (from != Mirror::mirrored(launch, to)) return kPullsNothing;
    return {0, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

}  // namespace windlass
