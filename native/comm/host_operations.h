// SPDX-License-Identifier: Apache-2.0
// Collective operations that make host objects rather than move tensors: windows and split
// communicators.
#pragma once

#include <memory>

#include "native/comm/comm.h"

namespace windlass {

// `bytes` on every rank, zeroed. All ranks get the same segments, or the same error. `segments` is
// nullptr on a rank that found no memory for its handle: an error of all.
Code createSegments(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                    std::shared_ptr<Segments>* segments, wl_error_t* error);

// What one rank states of a split.
struct Split {
  wl_operation operation;  // WL_OP_SPLIT, or WL_OP_SUBSET where a list of ranks makes the others
  int32_t color;
  int32_t key;
  uint32_t listed;  // ranks of the list
  uint64_t digest;  // of the list, on which ranks agree
};

// Ranks of one color, ordered by (key, rank), meet in a group of their own. A negative color gets
// nullptr. A rank whose call fails leaves the group that it would have got, now or once it is made.
Code splitGroup(Comm& comm, const Split& split, int64_t deadlineNs, std::shared_ptr<Group>* group,
                uint32_t* rank, wl_error_t* error);

// Takes `rank`, which never joined, out of a group that a split made, and ends the group: it names
// the rank, its `operation`, a split or a subset, and `why` that failed there.
void leaveSplit(Group& group, uint32_t rank, wl_operation operation, const wl_error_t& why);

}  // namespace windlass
