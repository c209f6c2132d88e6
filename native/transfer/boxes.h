// SPDX-License-Identifier: Apache-2.0
// Converts the chunks of a plan to the boxes that one rank's targets and staging buffers receive.
// Every index, region and dtype is checked against the views at both ends.
#pragma once

#include "native/transfer/peers.h"
#include "windlass/chunk.h"

namespace windlass {

// Views and ranks against which a rank's chunks are checked.
struct Bound {
  const Group& group;
  uint32_t rank;
  const std::vector<Binding>& targets;
  const Stages& stages;
  const Peers& peers;
};

// Converts the chunks of wl_transfer_config, in order. Each nonempty chunk becomes a ChunkItem with
// one target. Chunks that write a target binding are also added to `progress`, in the same order.
Code readBoxes(const wl_transfer_config_t& config, const Bound& bound, WordList* boxes,
               Progress* progress, wl_error_t* error);

// True if the box's target is a staging buffer. Only the rank itself writes such a box.
inline bool isStaged(const ChunkItem& box) {
  return ChunkItem::signalOf(box.target(0)).isNone();
}

}  // namespace windlass
