// SPDX-License-Identifier: Apache-2.0
// All-gather: the input of rank s becomes part s of every rank's output.
//
// args     in   bytes; may be the rank's own part of out (in place)
//          out  ranks x bytes
// phases   one: TPUT of a piece of the rank's input into the output of every rank, one after
//          the other, so that it is read from memory once
//          eager:  TGET of each rank's input from the copy that travels with ENTER
// signals  ENTER of the peer before its output is written; DONE of every rank before return, since
//          they write this rank's output. Eager: ENTER of the peer before its copy is read; no
//          DONE.
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/peer_items.h"
#include "kernels/pull.h"

namespace windlass {

// Small enough to stay in the caches next to the core while it goes to all outputs.
constexpr uint64_t kGatheredPiece = uint64_t{32} << 10;

struct AllGather : PeerItems<kGatheredPiece> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    put(run(launch, rank, peer(launch, rank, block), piece(launch, block)));
  }
  WL_CORE static Run run(const Launch& launch, uint32_t from, uint32_t to, uint32_t piece) {
    const uint64_t start = launch.pieceStart(piece);
    const auto* in = launch.in(from) + start;
    auto* out = launch.out(to) + from * launch.bytes + start;
    return {out, in, launch.pieceLength(piece)};
  }
};

struct AllGatherPull : AllGather {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    get(run(launch, peer(launch, rank, block), rank, piece(launch, block)));
  }
};

// Across processes; see kernels/pull.h.
struct AllGatherReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    return {0, from * launch.bytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

}  // namespace windlass
