// SPDX-License-Identifier: Apache-2.0
// All-to-all: chunk d of rank r's input becomes chunk r of rank d's output.
//
// args     in   ranks x bytes, contiguous
//          out  ranks x bytes, contiguous; no overlap with in
// phases   push: TPUT of input chunk d straight into the output of peer d
//          pull: TGET of input chunk r straight from the input of peer s
// signals  push: ENTER of the peer before its output is written; DONE of every rank before return,
//          since they write this rank's output
//          pull: ENTER of the peer before its input is read; DONE of every rank before return,
//          since they read this rank's input
//          eager:  pull from the copy of a small input that travels with ENTER; no DONE
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/peer_items.h"
#include "kernels/pull.h"

namespace windlass {

struct AllToAllPush : PeerItems<uint64_t{256} << 10> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    put(run(launch, rank, peer(launch, rank, block), piece(launch, block)));
  }
  WL_CORE static Run run(const Launch& launch, uint32_t from, uint32_t to, uint32_t piece) {
    const uint64_t start = launch.pieceStart(piece);
    const auto* in = launch.in(from) + to * launch.bytes + start;
    auto* out = launch.out(to) + from * launch.bytes + start;
    return {out, in, launch.pieceLength(piece)};
  }
};

struct AllToAllPull : AllToAllPush {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    get(run(launch, peer(launch, rank, block), rank, piece(launch, block)));
  }
};

// Across processes; see kernels/pull.h.
struct AllToAllReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {to * launch.bytes, from * launch.bytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

}  // namespace windlass
