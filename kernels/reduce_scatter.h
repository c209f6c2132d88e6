// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter: part r of the reduction of all inputs becomes rank r's output.
//
// args     in   ranks x bytes
//          out  bytes; may be the rank's own part of in (in place)
// phases   one: TFOLD of a piece of part r over the inputs of all ranks
// signals  ENTER of every rank before inputs are read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input travels with ENTER; no DONE.
// order    canonical: left fold in ascending rank. Only rank r reads part r, so in place is safe.
#pragma once

#include "kernels/fold.h"
#include "kernels/pull.h"

namespace windlass {

struct ReduceScatter : FoldItems<uint64_t{128} << 10> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t start = launch.pieceStart(block);
    foldRanks(
        launch, launch.pieceLength(block), 1,
        [&](uint32_t s) { return launch.in(s) + rank * launch.bytes + start; },
        [&](uint32_t) { return launch.out(rank) + start; });
  }
};

// Across processes; see kernels/pull.h.
struct ReduceScatterReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    return {to * launch.bytes, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsApart, {}}, pulled, nullptr};
};

}  // namespace windlass
