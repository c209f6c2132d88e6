// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter of parts that differ in size: part r of the reduction of all inputs becomes rank
// r's output.
//
// args     in   the parts of all ranks
//          out  as long as the rank's part; may be that part of in (in place)
//          aux  PartTable: in, the same on every rank
// phases   one: TFOLD of a piece of part r over the inputs of all ranks
// signals  ENTER of every rank before inputs are read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input travels with ENTER; no DONE.
// order    canonical: left fold in ascending rank. Only rank r reads part r, so in place is safe.
#pragma once

#include "kernels/fold.h"
#include "kernels/pull.h"

namespace windlass {

struct ReduceScatterV : FoldItems<uint64_t{128} << 10> {
  WL_CORE static void plan(Launch& launch) { launch.cut(1, 1); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return pieceCount(launch.parts(rank).in(rank).bytes, uint64_t{128} << 10, 256);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const Part whole = launch.parts(rank).in(rank);
    const Part part = whole.piece(block, blocks(launch, rank));
    foldRanks(
        launch, part.bytes, 1,
        [&](uint32_t s) { return launch.in(s) + part.start; },
        [&](uint32_t) { return launch.out(rank) + (part.start - whole.start); });
  }
};

// Across processes; see kernels/pull.h.
struct ReduceScatterVReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    const Part part = launch.parts(to).in(to);
    return {part.start, 0, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsApart, {}}, pulled, nullptr};
};

}  // namespace windlass
