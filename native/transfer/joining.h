// SPDX-License-Identifier: Apache-2.0
// Boxes of all ranks that take the same from the same sources become one with all their targets, so
// that it is read once. The rank that owns a box's first source, its owner, tells each of its ranks
// who they are.
#pragma once

#include "native/transfer/boxes.h"

namespace windlass {

// questions[owner], behind what they hold: this rank's boxes, but staged ones, as the owner is to
// see them.
void askOwners(const WordList& boxes, std::vector<WordList>* questions);

// As owner `rank`, who joins no more than `most` targets: what each rank asks from its word `at` on
// becomes its answers, box by box:
// targets | part << 32, part being its own number among them; and where they are several, a turn,
// that of the target whose rank runs the first item, and the words of each target.
void answer(uint32_t rank, const Group& group, uint32_t most, uint64_t at,
            std::vector<WordList>* questions);

// Reads the answers in the order in which the boxes were asked about.
class Answers {
 public:
  explicit Answers(const std::vector<WordList>& answers) : answers_(answers), at_(answers.size()) {}

  struct Joined {
    ChunkItem box;
    uint32_t part;
    uint64_t turn;
  };
  // The box with all its targets; lasts until the next call.
  Joined next(const ChunkItem& box);

 private:
  const std::vector<WordList>& answers_;
  std::vector<size_t> at_;
  WordList joined_;
};

}  // namespace windlass
