// SPDX-License-Identifier: Apache-2.0
// The items (peer, piece) of operations whose parts differ in size: nearest higher rank first, the
// rank itself last. Every part is cut into as many pieces as the rank's largest.
#pragma once

#include "kernels/bytes.h"
#include "windlass/kernel.h"

namespace windlass {

struct PartItems {
  static constexpr uint32_t phases(const Launch&) { return 1; }
  static constexpr bool kStaged = false;
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t pieces(const Launch& launch, uint32_t rank) {
    return pieceCount(launch.parts(rank).largest, uint64_t{256} << 10, 64);
  }
  static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return launch.ranks * pieces(launch, rank);
  }
  static uint32_t peer(const Launch& launch, uint32_t rank, uint32_t block) {
    return ringStep(launch, rank, 1 + block / pieces(launch, rank));
  }
  static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t other = peer(launch, rank, block);
    return other == rank ? kNobody : other;
  }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace windlass
