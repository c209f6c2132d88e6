// SPDX-License-Identifier: Apache-2.0
// The items (piece, peer) of operations in which every rank has data for every rank. A piece goes
// to, or comes from, the nearest higher rank first and the rank itself last. Then the next piece
// follows.
#pragma once

#include "kernels/bytes.h"
#include "kernels/items.h"
#include "windlass/kernel.h"

namespace windlass {

// Items of a kernel with units of equal size, which are cut into pieces of about kPieceBytes.
template <uint64_t kPieceBytes>
struct PeerItems : Items {
  WL_CORE static void plan(Launch& launch) { launch.cut(kPieceBytes, 64); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) {
    return launch.ranks * launch.pieces;
  }
  // Most items belong to the first piece. For these, a division would take longer than a short
  // move.
  WL_CORE static uint32_t piece(const Launch& launch, uint32_t block) {
    return block < launch.ranks ? 0 : block / launch.ranks;
  }
  WL_CORE static uint32_t peer(const Launch& launch, uint32_t rank, uint32_t block) {
    return ringStep(launch, rank, 1 + block - piece(launch, block) * launch.ranks);
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t other = peer(launch, rank, block);
    return other == rank ? kNobody : other;
  }
};

// Items of a kernel with parts that differ in size. A rank cuts each of its parts into as many
// pieces as its largest part needs.
template <uint64_t kPieceBytes>
struct PartItems : PeerItems<kPieceBytes> {
  WL_CORE static void plan(Launch& launch) { launch.cut(1, 1); }
  WL_CORE static uint32_t pieces(const Launch& launch, uint32_t rank) {
    return pieceCount(launch.parts(rank).largest, kPieceBytes, 64);
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return launch.ranks * pieces(launch, rank);
  }
};

}  // namespace windlass
