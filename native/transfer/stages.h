// SPDX-License-Identifier: Apache-2.0
// Staging buffers of one rank between two phases of a transfer, as wl_transfer_config states them.
#pragma once

#include <vector>

#include "native/memory/memory.h"
#include "native/transfer/binding.h"

namespace windlass {

// A box written in one phase is read in the next. Boxes of even phases lie in one half of the
// memory, boxes of odd phases in the other.
class Stages {
 public:
  struct Box {
    Binding view;
    uint32_t phase;
    uint64_t offset;       // in the half of its phase
    uint32_t readers;      // number of ranks that read it
    uint64_t firstReader;  // index into the readers of all boxes
  };

  // Decodes and checks the words, and allocates the memory.
  Code read(const wl_transfer_config_t& config, wl_error_t* error);

  const std::vector<Box>& boxes() const { return boxes_; }
  const uint32_t* readersOf(const Box& box) const { return readers_.data() + box.firstReader; }
  // Frees the list of boxes. The staging buffers stay.
  void dropBoxes() {
    std::vector<Box>().swap(boxes_);
    std::vector<uint32_t>().swap(readers_);
  }
  uint64_t bytes() const { return halves_[0] + halves_[1]; }
  void* memory() const { return memory_.get(); }  // nullptr without boxes

 private:
  Code readBox(Words& in, wl_error_t* error);
  // Allocates both halves, and places each box at its offset in the half of its phase.
  Code allocate(wl_error_t* error);

  std::vector<Box> boxes_;
  std::vector<uint32_t> readers_;
  OwnedMemory memory_;
  uint64_t halves_[2] = {0, 0};  // bytes of each
};

}  // namespace windlass
