// SPDX-License-Identifier: Apache-2.0
// Joins boxes of all ranks that read the same sources into one box, so that the sources are read
// once. The owner of a box is the rank of its first source. It sends the joined targets to their
// ranks.
#pragma once

#include "native/transfer/boxes.h"

namespace windlass {

// Appends this rank's boxes to questions[owner], except boxes for staging buffers.
void askOwners(const WordList& boxes, std::vector<WordList>* questions);

// Called by owner `rank`. Replaces each rank's questions, from word `at` on, with answers, box by
// box. Joins at most `most` targets. An answer is targets | part << 32, where `part` is the box's
// index among the targets. If there are several, a turn and each target's words follow. The rank of
// target number turn % targets runs the first item.
void answer(uint32_t rank, const Group& group, uint32_t most, uint64_t at,
            std::vector<WordList>* questions);

// Reads the answers. The order of boxes must match the order of askOwners().
class Answers {
 public:
  explicit Answers(const std::vector<WordList>& answers) : answers_(answers), at_(answers.size()) {}

  struct Joined {
    ChunkItem box;
    uint32_t part;
    uint64_t turn;
  };
  // Returns the box with all its targets, valid until the next call.
  Joined next(const ChunkItem& box);

 private:
  const std::vector<WordList>& answers_;
  std::vector<size_t> at_;
  WordList joined_;
};

}  // namespace windlass
