// SPDX-License-Identifier: Apache-2.0
// All-to-all: chunk d of rank r's input becomes chunk r of rank d's output.
//
// args     in   ranks x bytes, contiguous
//          out  ranks x bytes, contiguous; no overlap with in
// phases   push: TPUT of input chunk d straight into the output of peer d
//          pull: TGET of input chunk r straight from the input of peer s
//          Items are (peer, piece): nearest higher rank first, the rank itself last.
// signals  push: ENTER of the peer before its output is written; DONE of every rank before return,
//          since they write this rank's output
//          pull: ENTER of the peer before its input is read; DONE of every rank before return,
//          since they read this rank's input
//          eager: pull from the copy of a small input that rides with ENTER; no DONE
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/bytes.h"
#include "windlass/kernel.h"

namespace windlass {
namespace detail {

struct AllToAllItems {
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
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace detail

struct AllToAllPush : detail::AllToAllItems {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t to = peer(launch, rank, block);
    const uint32_t piece = block % launch.pieces;
    const uint64_t start = launch.pieceStart(piece);
    const uint64_t length = launch.pieceLength(piece);
    const auto* in = static_cast<const uint8_t*>(launch.of(rank).in);
    auto* out = static_cast<uint8_t*>(launch.of(to).out);
    ByteTile tile;
    TPUT(row(out + rank * launch.bytes + start, length),
         row(in + to * launch.bytes + start, length), tile);
  }
};

struct AllToAllPull : detail::AllToAllItems {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t from = peer(launch, rank, block);
    const uint32_t piece = block % launch.pieces;
    const uint64_t start = launch.pieceStart(piece);
    const uint64_t length = launch.pieceLength(piece);
    const auto* in = static_cast<const uint8_t*>(launch.of(from).in);
    auto* out = static_cast<uint8_t*>(launch.of(rank).out);
    ByteTile tile;
    TGET(row(out + from * launch.bytes + start, length),
         row(in + rank * launch.bytes + start, length), tile);
  }
};

struct AllToAllEager : AllToAllPull {
  static constexpr bool kStaged = true;
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
};

}  // namespace windlass
