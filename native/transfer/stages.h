// SPDX-License-Identifier: Apache-2.0
// Where a rank stages boxes between two phases of a transfer, as wl_transfer_config states it.
#pragma once

#include <vector>

#include "native/memory/memory.h"
#include "native/transfer/binding.h"

namespace windlass {

// What is written in one phase is read in the next: boxes of even phases lie in one half of the
// memory, those of odd phases in the other.
class Stages {
 public:
  struct Box {
    Binding view;
    uint32_t phase;
    uint32_t readers;      // ranks that read it
    uint64_t firstReader;  // of those of all boxes
  };

  // Reads and checks the words, and allocates.
  Code read(const int64_t* words, uint64_t wordCount, uint64_t count, wl_error_t* error);

  const std::vector<Box>& boxes() const { return boxes_; }
  const uint32_t* readersOf(const Box& box) const { return readers_.data() + box.firstReader; }
  // Keeps the memory alone.
  void dropBoxes() {
    std::vector<Box>().swap(boxes_);
    std::vector<uint32_t>().swap(readers_);
  }
  uint64_t bytes() const { return bytes_; }
  void* memory() const { return memory_.get(); }  // nullptr: there are none

 private:
  std::vector<Box> boxes_;
  std::vector<uint32_t> readers_;
  OwnedMemory memory_;
  uint64_t bytes_ = 0;
};

}  // namespace windlass
