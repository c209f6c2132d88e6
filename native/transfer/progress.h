// SPDX-License-Identifier: Apache-2.0
// What the runs of a transfer have written of one rank's targets.
#pragma once

#include <cstdint>
#include <deque>

namespace windlass {

class Progress {
 public:
  // A chunk of `bytes` bytes of target `binding`; the signal that counts the items that have
  // written it, where it stays. Throws std::bad_alloc.
  const uint32_t* add(uint64_t binding, uint64_t bytes) {
    chunks_.push_back({0, 0, bytes, binding});
    return &chunks_.back().done;
  }
  // Items of all ranks that write chunk `index`, of those added.
  void setItems(uint64_t index, uint32_t items) { chunks_[index].items = items; }

  // Before the rank enters a run.
  void reset();
  // Adds the bytes written to each of the first `count` targets in the run in progress, or in the
  // last one: of a chunk that some of its items have written, that share of its bytes. What was
  // written is visible to the caller. Any thread.
  void addMoved(uint64_t* moved, uint64_t count) const;

 private:
  struct Chunk {
    uint32_t done;  // peers add to it
    uint32_t items;
    uint64_t bytes;
    uint64_t binding;
  };

  std::deque<Chunk> chunks_;
};

}  // namespace windlass
