// SPDX-License-Identifier: Apache-2.0
// Windows of a communicator as one process maps them. A window that is made while ranks live in
// several processes stays mapped in every process until the last rank has dropped it. One rank
// takes its number for all ranks, each process holds its memory, and every rank drops it once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "native/core/control_block.h"
#include "windlass/kernel.h"

namespace windlass {

// How a rank names memory of its process as an address in window 0, the address space.
inline Place placeInAddressSpace(const void* memory) {
  return Place::of(kAddressSpace, Place::offsetOf(reinterpret_cast<uint64_t>(memory)));
}

class GroupWindows {
 public:
  // Adds the control block, which counts the ranks that hold the other windows.
  void place(const ControlBlock& block);
  // Indexed by window.
  const WindowBase* table() const { return table_; }

  // Takes an unused number for `ranks` ranks. Returns kNobody if none is left.
  uint32_t take(uint32_t ranks);
  // Gives back a taken number, before any rank has the window.
  void giveBack(uint32_t window) { holders_[window].store(0, std::memory_order_seq_cst); }
  // Records where this process maps the window. `memory` owns the mapping, and sweep() drops it.
  // nullptr: the mapping is never dropped.
  void hold(uint32_t window, std::shared_ptr<const void> memory, void* base, uint64_t stride,
            uint64_t bytes);
  void drop(uint32_t window) { holders_[window].fetch_sub(1, std::memory_order_seq_cst); }
  // Unmaps windows that no rank holds any more. If no rank may access memory any more (`isOver`),
  // also unmaps those that nobody but this list keeps. On return, sweeps that other threads began
  // are over, too.
  void sweep(bool isOver);

  // Calls visit(base, bytes of a segment) for each window that this process holds.
  template <class Visit>
  void forEach(Visit&& visit) const {
    const uint32_t count = count_.load(std::memory_order_acquire);
    for (uint32_t window = kControlBlock + 1; window < count; ++window) {
      const uint64_t bytes = bytes_[window].load(std::memory_order_acquire);
      if (bytes != 0) visit(table_[window], bytes);
    }
  }
  // Address in this process of the memory that `rank` names by `place`.
  void* at(uint32_t rank, Place place) const {
    return reinterpret_cast<void*>(table_[place.window()].segment(rank) + place.offset());
  }
  // Address in this process of `rank`'s part of the window at `offset`. nullptr: the bytes are not
  // all inside.
  void* within(uint32_t rank, uint32_t window, uint64_t offset, uint64_t bytes) const {
    const uint64_t held = bytes_[window].load(std::memory_order_acquire);
    return offset <= held && bytes <= held - offset ? at(rank, Place::of(window, offset)) : nullptr;
  }
  // Returns the address in the window that holds all `bytes` of `rank`'s memory. If no window does,
  // returns an address in window 0.
  [[gnu::noinline]] Place find(uint32_t rank, const void* memory, uint64_t bytes) const;

 private:
  WindowBase table_[kMostWindows] = {};
  std::atomic<uint64_t> bytes_[kMostWindows] = {};  // 0: no window has this number
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t>* holders_ = nullptr;  // for each window, ranks that have not dropped it
  std::mutex sweepMutex_;  // taken before mutex_; one thread unmaps windows
  std::mutex mutex_;       // guards held_
  std::shared_ptr<const void> held_[kMostWindows];
};

}  // namespace windlass
