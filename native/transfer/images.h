// SPDX-License-Identifier: Apache-2.0
// Addresses for transfers that the ranks' devices run. Each rank sends the owners the views that
// its boxes use. The owners answer with the views' addresses on the devices.
#pragma once

#include "native/device/offloaded_transfer.h"
#include "native/transfer/stages.h"
#include "native/transfer/words.h"
#include "windlass/chunk.h"

namespace windlass {

class Group;

// Appends the box's views to questions[owner]. `rank` is this rank.
void askOwners(uint32_t rank, const ChunkItem& box, std::vector<WordList>* questions);

// Called by owner `rank`. Replaces each rank's questions with answers, view by view. Sets *layouts
// to `operations` layouts, one per operation. A layout states the memory that this rank's device
// holds copies of in that operation.
Code layOutImages(const Group& group, uint32_t rank, const Stages& stages, uint64_t operations,
                  std::vector<WordList>* questions, std::vector<ImageLayout>* layouts,
                  wl_error_t* error);

// Reads the answers. The order of boxes must match the order of askOwners().
class ImageAnswers {
 public:
  explicit ImageAnswers(const std::vector<WordList>& answers)
      : answers_(answers), at_(answers.size()) {}

  // Returns the box with device addresses, valid until the next call.
  ChunkItem next(const ChunkItem& box);

 private:
  const std::vector<WordList>& answers_;
  std::vector<size_t> at_;
  WordList renamed_;
};

}  // namespace windlass
