// SPDX-License-Identifier: Apache-2.0
// Reduce to a root: the reduction of all inputs becomes the root's output.
//
// args     in   bytes, every rank's
//          out  bytes, the root's; may be its in (in place)
// phases   one: TFOLD of a piece over the inputs of all ranks
// signals  ENTER of every rank before inputs are read; DONE of the root before any other rank
//          returns. Eager: a small input travels with ENTER; no DONE.
// order    canonical: left fold in ascending rank. Each piece is read whole before it is written.
#pragma once

#include "kernels/all_reduce.h"
#include "kernels/pull.h"

namespace windlass {

// The folds of an all-reduce, by the root only.
struct Reduce : AllReduceOnePhase {
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return rank == launch.root ? launch.pieces : 0;
  }
  WL_CORE static uint32_t leavesAfter(const Launch& launch, uint32_t rank) {
    return rank == launch.root ? kNobody : launch.root;
  }
};

// Across processes; see kernels/pull.h.
struct ReduceReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    return {0, 0, to == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kFoldsSame, {}}, pulled, nullptr};
};

}  // namespace windlass
