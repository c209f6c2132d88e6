// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank/claims.h"

namespace windlass {

Claims::Claim Claims::next(uint32_t owner, uint32_t phase) const {
  const uint64_t word = group_.lines(owner).work.next.load(std::memory_order_acquire);
  const auto front = static_cast<uint32_t>(word >> 20 & kMostBlocks);
  const auto left = static_cast<uint32_t>(word & kMostBlocks);
  const bool current = word >> 40 == workWord(operation_.wholeSequence(), phase, 0) >> 40;
  if (!current || left == 0) return {word, 0, 0};
  return owner == rank_ ? Claim{word, kTakeFront, front} : Claim{word, kTakeBack, front + left - 1};
}

void Claims::offer(uint32_t owner, uint32_t phase, uint32_t blocks) {
  Work& work = group_.lines(owner).work;
  work.finished.store(0, std::memory_order_relaxed);
  work.next.store(workWord(operation_.wholeSequence(), phase, blocks), std::memory_order_release);
}

}  // namespace windlass
