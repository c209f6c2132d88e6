// SPDX-License-Identifier: Apache-2.0
// From the chunks of a plan to the boxes that one rank's targets and stages get: every index,
// region and dtype is checked against the views at both ends.
#pragma once

#include "native/transfer/peers.h"
#include "windlass/chunk.h"

namespace windlass {

// What a rank's chunks are read against.
struct Bound {
  const Group& group;
  uint32_t rank;
  const std::vector<Binding>& targets;
  const Stages& stages;
  const Peers& peers;
};

// The chunks of wl_transfer_config, each with a target at which bytes arrive as a ChunkItem of that
// one target, in their order. Those that are not staged are added to `progress` in that order too.
Code readBoxes(const wl_transfer_config_t& config, const Bound& bound, WordList* boxes,
               Progress* progress, wl_error_t* error);

// visit(box) for each box of the words from `at` on.
template <class Visit>
void forEachChunkItem(const WordList& boxes, uint64_t at, Visit&& visit) {
  const uint64_t* end = boxes.data() + boxes.size();
  ChunkItem box = {boxes.data() + at};
  for (; box.words != end; box.words += box.size()) visit(static_cast<const ChunkItem&>(box));
}

// Whether the box is staged, so that its own rank alone writes it, for itself.
inline bool isStaged(const ChunkItem& box) {
  return ChunkItem::signalOf(box.target(0)).isNone();
}

}  // namespace windlass
