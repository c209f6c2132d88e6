// SPDX-License-Identifier: Apache-2.0
// Scans: the reduction of the inputs of the ranks up to rank r, or before it, becomes rank r's
// output.
//
// args     in   bytes
//          out  bytes; never in, which higher ranks read
// phases   one: TFOLD of a piece over the inputs of the first ranks. Without any, as on rank 0 of an
//          exclusive scan, TFOLD writes the identity of the reduction.
// signals  ENTER of every rank before inputs are read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input travels with ENTER; no DONE.
// order    canonical: left fold in ascending rank
#pragma once

#include "kernels/fold.h"
#include "kernels/pull.h"

namespace windlass {

// Rank r folds the first r + kOwn ranks.
template <uint32_t kOwn>
struct Prefix : FoldItems<uint64_t{64} << 10> {
  WL_CORE static uint32_t terms(const Launch&, uint32_t rank) { return rank + kOwn; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t start = launch.pieceStart(block);
    foldFirst(
        launch, terms(launch, rank), launch.pieceLength(block), 1,
        [&](uint32_t s) { return launch.in(s) + start; },
        [&](uint32_t) { return launch.out(rank) + start; });
  }
};
using Scan = Prefix<1>;
using ExclusiveScan = Prefix<0>;

// Across processes; see kernels/pull.h.
template <class K>
struct PrefixReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    return {0, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsSame, {}}, pulled, nullptr, false, K::terms};
};

}  // namespace windlass
