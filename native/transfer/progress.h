// SPDX-License-Identifier: Apache-2.0
// Counts how much of one rank's targets a transfer has written.
#pragma once

#include <cstdint>
#include <deque>

namespace windlass {

class Progress {
 public:
  // Adds a chunk of `bytes` bytes of target `binding`. Returns the signal that counts the items
  // that have written the chunk; its address stays valid. Throws std::bad_alloc.
  const uint32_t* add(uint64_t binding, uint64_t bytes) {
    chunks_.push_back({0, 0, bytes, binding});
    return &chunks_.back().done;
  }
  // Sets the number of items, over all ranks, that write chunk `index`, in order of add().
  void setItems(uint64_t index, uint32_t items) { chunks_[index].items = items; }

  // Call before the rank enters a run.
  void reset() {
    for (Chunk& chunk : chunks_) __atomic_store_n(&chunk.done, 0, __ATOMIC_RELAXED);
  }
  // Adds the bytes written to each of the first `count` targets in the current or the last run. A
  // partly written chunk counts in proportion to its completed items. The counted bytes are visible
  // to the caller. Thread-safe.
  void addMoved(uint64_t* moved, uint64_t count) const {
    for (const Chunk& chunk : chunks_) {
      if (chunk.binding >= count || chunk.items == 0) continue;
      const uint64_t done = __atomic_load_n(&chunk.done, __ATOMIC_ACQUIRE);
      const uint64_t each = chunk.bytes / chunk.items;
      moved[chunk.binding] += each * done + chunk.bytes % chunk.items * done / chunk.items;
    }
  }

 private:
  struct Chunk {
    uint32_t done;  // incremented by peers
    uint32_t items;
    uint64_t bytes;
    uint64_t binding;
  };

  std::deque<Chunk> chunks_;
};

}  // namespace windlass
