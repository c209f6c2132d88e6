// SPDX-License-Identifier: Apache-2.0
// Broadcast, root-staged: the root's input becomes every rank's output.
//
// args     in   the root's, bytes
//          out  every rank's, bytes; NULL on a root in place
// phases   one: TGET of a piece from the root. If ranks share memory, the root's input is the
//          staging buffer.
// signals  ENTER of the root before its input is read; DONE of every reader before the root
//          returns. A reader waits only for the root. If ranks live in several processes, it waits
//          for every ENTER, which determines if all pull. Eager: a small input travels with ENTER;
//          no DONE.
// order    the root's ENTER releases its input; a reader's DONE acknowledges that it has been read
#pragma once

#include "kernels/bytes.h"
#include "kernels/items.h"
#include "kernels/pull.h"
#include "windlass/kernel.h"

namespace windlass {

struct Broadcast : Items {
  // Quarters let a root and one reader share the copy evenly; smaller pieces cost more claims than
  // they balance.
  static constexpr uint64_t kLeast = uint64_t{16} << 10;
  static constexpr uint64_t kMost = uint64_t{128} << 10;
  static constexpr bool kKeepsRoot = true;
  WL_CORE static void plan(Launch& launch) {
    const uint64_t quarter = launch.bytes / 4;
    launch.cut(quarter < kLeast ? kLeast : (quarter > kMost ? kMost : quarter), 1024);
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return launch.of(rank).out.isNone() ? 0 : launch.pieces;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return rank == launch.root ? kNobody : launch.root;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t start = launch.pieceStart(block);
    const uint64_t length = launch.pieceLength(block);
    const auto* in = launch.in(launch.root);
    auto* out = launch.out(rank);
    get({out + start, in + start, length});
  }
  WL_CORE static uint32_t leavesAfter(const Launch& launch, uint32_t rank) {
    return rank == launch.root ? kEveryRank : kNobody;
  }
};

// Across processes; see kernels/pull.h.
struct BroadcastReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    if (from != launch.root || (to == from && launch.of(to).out.isNone())) return kPullsNothing;
    return {0, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

}  // namespace windlass
