// SPDX-License-Identifier: Apache-2.0
// Collective operations that make host objects rather than move tensors: windows and split
// communicators. What ranks tell one another of them is a few words, which they gather; what they
// make lies in their own processes.
#pragma once

#include <memory>
#include <vector>

#include "native/base/clock.h"
#include "native/core/comm.h"

namespace windlass {

// The one deadline of operations in a row, as a window or a split takes them.
struct TimeLimit {
  int64_t deadlineNs;  // 0 = the communicator's
  int64_t startNs;

  static TimeLimit fromNow(int64_t deadlineNs) { return {deadlineNs, clockNs()}; }
};

// Gathers `bytes`, at most kGatheredBytes, of each rank in ascending order as the next operation,
// which the descriptor states. Nobody's memory is read after its call has returned.
constexpr uint64_t kGatheredBytes = uint64_t{4} << 10;
Code gatherWords(Comm& comm, const Descriptor& descriptor, const void* own, uint64_t bytes,
                 void* all, const TimeLimit& limit, wl_error_t* error);

// As the next operation, or two: Ok where every rank's part of what the descriptor states is, else
// the error of the first rank whose part is not. `own` is this rank's.
Code shareOutcome(Comm& comm, const Descriptor& descriptor, const wl_error_t& own,
                  const TimeLimit& limit, wl_error_t* error);

// The same of what ranks' devices do: one that has failed on a rank, WL_DEVICE, ends the
// communicator on all, which know it alike.
Code shareDeviceOutcome(Comm& comm, const Descriptor& descriptor, const wl_error_t& own,
                        const TimeLimit& limit, wl_error_t* error);

// What ranks ask for alike.
struct NewWindow {
  wl_operation operation;  // WL_OP_WINDOW, or WL_OP_MEMORY_POOL: no page of it has memory at first
  uint64_t bytes;

  bool isSparse() const { return operation == WL_OP_MEMORY_POOL; }
  const char* name() const { return isSparse() ? "memory pool" : "window"; }
  Descriptor descriptor() const { return Descriptor::of(operation, bytes); }
};

// Memory on every rank, zeroed. All ranks get the same window, or the same error. `window` is
// nullptr on a rank that found no memory for its handle: an error of all.
Code createWindow(Comm& comm, const NewWindow& asked, int64_t deadlineNs,
                  std::shared_ptr<Window>* window, wl_error_t* error);

// What one rank states of a split.
struct Split {
  wl_operation operation;  // WL_OP_SPLIT, or WL_OP_SUBSET where a list of ranks makes the others
  int32_t color;
  int32_t key;
  uint32_t listed;  // ranks of the list
  uint64_t digest;  // of the list, on which ranks agree

  Descriptor descriptor() const {
    return Descriptor::of(operation, digest, 0, 0, 0, static_cast<int32_t>(listed));
  }
};

// What it tells the others of that.
struct ToldSplit {
  int32_t color;
  int32_t key;
};

// Ranks of that color, by what all ranks have told, in the order in which they are ranks of its
// group. `members` has room for all ranks: nothing is allocated.
void findMembers(const std::vector<ToldSplit>& all, int32_t color, std::vector<uint32_t>* members);

// Ranks of one color, ordered by (key, rank), meet in a group of their own. A negative color gets
// nullptr. A rank whose call fails leaves the group that it would have got, now or once it is made.
Code splitGroup(Comm& comm, const Split& split, int64_t deadlineNs, std::shared_ptr<Group>* group,
                uint32_t* rank, wl_error_t* error);

// Takes `rank`, which never joined, out of a group that a split made, and ends the group: it names
// the rank, its `operation`, a split or a subset, and `why` that failed there.
void leaveSplit(Group& group, uint32_t rank, wl_operation operation, const wl_error_t& why);

}  // namespace windlass
