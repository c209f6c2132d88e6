// SPDX-License-Identifier: Apache-2.0
// How ranks whose devices run a transfer name one another's memory: each tells the owners what its
// boxes name of theirs, and they say where their devices will have it.
#pragma once

#include "native/device/offloaded_transfer.h"
#include "native/transfer/stages.h"
#include "native/transfer/words.h"
#include "windlass/chunk.h"

namespace windlass {

class Group;

// questions[owner], behind what they hold: the box's views, as owners are to see them. `rank`: this
// one.
void askOwners(uint32_t rank, const ChunkItem& box, std::vector<WordList>* questions);

// As owner `rank`: what each rank asks becomes its answers, view by view, and *layouts, one for
// each of so many operations, say what this rank's device takes in them.
Code layOutImages(const Group& group, uint32_t rank, const Stages& stages, uint64_t operations,
                  std::vector<WordList>* questions, std::vector<ImageLayout>* layouts,
                  wl_error_t* error);

// Reads the answers in the order in which the boxes were asked about.
class ImageAnswers {
 public:
  explicit ImageAnswers(const std::vector<WordList>& answers)
      : answers_(answers), at_(answers.size()) {}

  // The box as devices are to have it; lasts until the next call.
  ChunkItem next(const ChunkItem& box);

 private:
  const std::vector<WordList>& answers_;
  std::vector<size_t> at_;
  WordList renamed_;
};

}  // namespace windlass
