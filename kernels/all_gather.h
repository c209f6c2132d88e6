// SPDX-License-Identifier: Apache-2.0
// All-gather: the input of rank s becomes part s of every rank's output.
//
// args     in   bytes; may be the rank's own part of out (in place)
//          out  ranks x bytes
// phases   one: TGET of a piece of each rank's input. Items are (peer, piece): nearest higher rank
//          first, the rank itself last.
// signals  ENTER of the peer before its input is read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input rides with ENTER; no DONE.
// order    a rank's ENTER releases its input; a reader's DONE acknowledges that it has been read
#pragma once

#include "kernels/bytes.h"
#include "windlass/kernel.h"

namespace windlass {

struct AllGather {
  static constexpr uint32_t phases(const Launch&) { return 1; }
  static constexpr bool kStaged = false;
  static void plan(Launch& launch) { launch.cut(uint64_t{256} << 10, 64); }
  static uint32_t blocks(const Launch& launch, uint32_t) { return launch.ranks * launch.pieces; }
  static uint32_t peer(const Launch& launch, uint32_t rank, uint32_t block) {
    return ringStep(launch, rank, 1 + block / launch.pieces);
  }
  static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t other = peer(launch, rank, block);
    return other == rank ? kNobody : other;
  }
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t from = peer(launch, rank, block);
    const uint32_t piece = block % launch.pieces;
    const uint64_t start = launch.pieceStart(piece);
    const uint64_t length = launch.pieceLength(piece);
    const uint8_t* in = static_cast<const uint8_t*>(launch.of(from).in) + start;
    uint8_t* out = static_cast<uint8_t*>(launch.of(rank).out) + from * launch.bytes + start;
    if (in == out) return;
    ByteTile tile;
    TGET(row(out, length), row(in, length), tile);
  }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

struct AllGatherEager : AllGather {
  static constexpr bool kStaged = true;
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
};

}  // namespace windlass
