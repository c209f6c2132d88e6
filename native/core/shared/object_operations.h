// SPDX-License-Identifier: Apache-2.0
// Collective operations that make host objects instead of moving tensors: windows and split
// communicators. Ranks gather a few words from one another, and make the objects in their own
// processes.
#pragma once

#include <memory>
#include <new>
#include <system_error>
#include <vector>

#include "native/base/clock.h"
#include "native/core/comm.h"
#include "native/memory/window.h"

namespace windlass {

// One deadline for several consecutive operations of a window or a split.
struct TimeLimit {
  int64_t deadlineNs;  // 0 = the communicator's
  int64_t startNs;

  static TimeLimit fromNow(int64_t deadlineNs) { return {deadlineNs, clockNs()}; }
};

// An operation on host objects. Its functions below run as the next operation of the communicator,
// or the next two, which the descriptor states.
struct HostOperation {
  Comm& comm;
  Descriptor descriptor;
  TimeLimit limit;
  wl_error_t* error;
};

// Gathers `bytes` bytes of each rank in ascending order of rank. They fit the rank's eager area,
// which has room for kGatheredBytes or more. A rank's memory is not read after its call has
// returned.
constexpr uint64_t kGatheredBytes = uint64_t{4} << 10;
Code gatherWords(const HostOperation& of, const void* own, uint64_t bytes, void* all);
// Sends `bytes` bytes of `own` to each rank, in ascending order of rank, and receives as many from
// each. `own` fits the eager area. Otherwise like gatherWords().
Code exchangeWords(const HostOperation& of, const void* own, uint64_t bytes, void* all);

// Replaces *word with its reduction over all ranks, by WL_MIN or WL_MAX.
Code reduceWord(const HostOperation& of, wl_reduce_op op, uint32_t* word);

// Returns Ok if every rank's part of the described operation succeeded, otherwise the error of the
// first rank that failed. `own` is this rank's result.
Code shareOutcome(const HostOperation& of, const wl_error_t& own);

// Runs shareOutcome() for the result of ranks' devices. If a device fails (WL_DEVICE), the
// communicator ends on all ranks, with the same error.
Code shareDeviceOutcome(const HostOperation& of, const wl_error_t& own);

// Runs body(), and sets *failure if `rank` lacks memory or a thread for it.
template <class Body>
void attempt(uint32_t rank, wl_error_t* failure, Body&& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    *failure = noMemory(rank);
  } catch (const std::system_error&) {
    fail(failure, WL_RESOURCE, "rank %u: no thread to watch other processes", rank);
  }
}

// Request for a window. It is the same on all ranks.
struct NewWindow {
  // WL_OP_WINDOW, or WL_OP_MEMORY_POOL, whose pages have no memory at first
  wl_operation operation;
  uint64_t bytes;

  bool isSparse() const { return operation == WL_OP_MEMORY_POOL; }
  const char* name() const { return isSparse() ? "memory pool" : "window"; }
  Descriptor descriptor() const { return Descriptor::of(operation, bytes); }
};

// Makes zeroed memory on every rank. All ranks get the same window, or the same error. `window` is
// nullptr on a rank without memory for its handle, which is an error on all ranks.
Code createWindow(Comm& comm, const NewWindow& asked, int64_t deadlineNs,
                  std::shared_ptr<Window>* window, wl_error_t* error);
// Implements createWindow for ranks in several processes. On each host one process makes the
// memory, and sends the others the file number to open.
Code createSharedWindow(const HostOperation& of, const NewWindow& asked,
                        std::shared_ptr<Window>* window);

// Arguments of a split on one rank.
struct Split {
  wl_operation operation;  // WL_OP_SPLIT, or WL_OP_SUBGROUP for a list of ranks
  int32_t color;
  int32_t key;
  uint32_t listed;  // ranks in the list
  uint64_t digest;  // hash of the list, on which ranks agree

  Descriptor descriptor() const { return Descriptor::numbered(operation, digest, listed); }
};

// The part of a Split that a rank sends to the others.
struct ToldSplit {
  int32_t color;
  int32_t key;
};

// Finds the ranks of that color in `all`, in their order in its group. `members` has room for all
// ranks: this function does not allocate.
void findMembers(const std::vector<ToldSplit>& all, int32_t color, std::vector<uint32_t>* members);

// Ranks of one color, ordered by (key, rank), get a group of their own. A negative color gets
// nullptr. A rank whose call fails leaves its group, now or after the group is made.
Code splitGroup(Comm& comm, const Split& split, int64_t deadlineNs, std::shared_ptr<Group>* group,
                uint32_t* rank, wl_error_t* error);
// Implements splitGroup for ranks in several processes, as createSharedWindow() does.
Code splitSharedGroup(const HostOperation& of, const Split& split, std::shared_ptr<Group>* group,
                      uint32_t* rank);

// Takes `rank`, which never joined, out of a group that a split made, and ends the group. The
// failure names the rank, its `operation` (split or subgroup), and the reason `why`.
void leaveSplit(Group& group, uint32_t rank, wl_operation operation, const wl_error_t& why);

}  // namespace windlass
