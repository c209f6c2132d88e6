// SPDX-License-Identifier: Apache-2.0
// Items of an operation on the cpu executor that ranks claim one by one. Ranks that wait, and
// workers of ranks, can thus run items of any rank.
#pragma once

#include "native/core/rank/operation.h"
#include "native/core/rank/waiter.h"

namespace windlass {

class Claims {
 public:
  Claims(Group& group, uint32_t rank, Operation& operation, Waiter& waiter)
      : group_(group), rank_(rank), operation_(operation), waiter_(waiter) {}

  // A block that may be claimed, and the step of the work word that claims it. `step` is 0 if there
  // is no such block.
  struct Claim {
    uint64_t word;
    uint64_t step;
    uint32_t block;
    explicit operator bool() const { return step != 0; }
  };
  // Lets ranks claim the blocks of `owner` in this phase.
  void offer(uint32_t owner, uint32_t phase, uint32_t blocks);
  // Returns the next unclaimed block of `owner` for this rank.
  Claim next(uint32_t owner, uint32_t phase) const;
  // Runs the block and returns true. Returns false if another thread has claimed a block of `owner`
  // since next(). `interrupted`: the wait that this rank interrupts for the block, or nullptr.
  template <class K>
  bool run(const Launch& launch, uint32_t owner, uint32_t phase, const Claim& claim,
           Waiter* interrupted);

  // Call only if every rank has a core. Runs one ready item of each other rank. If `ownToo`, also
  // runs one of this rank. A worker passes true, and a waiting rank passes false. Returns true if
  // an item ran.
  template <class K>
  bool help(const Launch& launch, bool ownToo);

  // Functions for groups with more ranks than cores. All ranks arrive before any rank runs items,
  // and one phase of all ranks is open at a time.
  //
  // Returns the number of such operations of this rank, including this one.
  uint64_t countArrival() { return ++arrivals_; }
  // Opens the items of `phase`, or of the first later phase that has any. Releases all ranks after
  // the last phase. One thread at a time calls this: the last arriver, then the thread that
  // finishes the last item of a phase.
  template <class K>
  void openPhase(const Launch& launch, uint32_t phase);
  // Runs items of the open phase until none is left. Returns true if one ran.
  template <class K>
  bool runOpenPhase(const Launch& launch, Waiter* interrupted);

 private:
  Group& group_;
  const uint32_t rank_;
  Operation& operation_;
  Waiter& waiter_;
  uint64_t arrivals_ = 0;
};

}  // namespace windlass
