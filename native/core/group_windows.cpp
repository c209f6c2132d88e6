// SPDX-License-Identifier: Apache-2.0
#include "native/core/group_windows.h"

#include <utility>

namespace windlass {

void GroupWindows::place(const ControlBlock& block) {
  table_[kControlBlock] = {block.base(), 0};
  count_ = kControlBlock + 1;
  holders_ = block.shared().holders;
}

uint32_t GroupWindows::take(uint32_t ranks) {
  for (uint32_t window = kControlBlock + 1; window < kMostWindows; ++window) {
    if (bytes_[window].load(std::memory_order_acquire) != 0) continue;
    uint32_t none = 0;
    if (holders_[window].compare_exchange_strong(none, ranks)) return window;
  }
  return kNobody;
}

void GroupWindows::hold(uint32_t window, std::shared_ptr<const void> memory, void* base,
                        uint64_t stride, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  held_[window] = std::move(memory);
  table_[window] = {reinterpret_cast<uint64_t>(base), stride};
  bytes_[window].store(bytes, std::memory_order_release);
  if (window >= count_.load(std::memory_order_relaxed))
    count_.store(window + 1, std::memory_order_release);
}

void GroupWindows::sweep(bool isOver) {
  std::lock_guard<std::mutex> sweeping(sweepMutex_);
  // Unmaps after mutex_ is released, since unmapping may take long.
  std::shared_ptr<const void> dropped[kMostWindows];
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t window = kControlBlock + 1; window < kMostWindows; ++window) {
    if (held_[window].use_count() != 1) continue;
    if (!isOver && holders_[window].load(std::memory_order_seq_cst) != 0) continue;
    bytes_[window].store(0, std::memory_order_release);
    dropped[window] = std::move(held_[window]);
  }
}

Place GroupWindows::find(uint32_t rank, const void* memory, uint64_t bytes) const {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t window = kControlBlock + 1; window < count; ++window) {
    const uint64_t held = bytes_[window].load(std::memory_order_acquire);
    const uint64_t start = table_[window].segment(rank);
    const uint64_t offset = address - start;
    if (address >= start && offset < held && bytes <= held - offset)
      return Place::of(window, offset);
  }
  return placeInAddressSpace(memory);
}

}  // namespace windlass
