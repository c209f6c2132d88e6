// SPDX-License-Identifier: Apache-2.0
// Failure records that one rank publishes of its operation in progress, or after its last one. See
// native/core/failure_text.h for the texts.
#pragma once

#include "native/core/group.h"
#include "native/core/rank/steps.h"

namespace windlass {

class RankFailures {
 public:
  RankFailures(Group& group, uint32_t rank)
      : group_(group), rank_(rank), state_(group.lines(rank).state) {}

  // Adds to `record` the operation in progress, this rank as the observer, and the faulty rank.
  wl_error_t recordOf(wl_error_t record) const;
  wl_error_t recordOf(wl_error_t record, uint32_t faultyRank) const {
    addFaultyRank(&record, faultyRank);
    return recordOf(record);
  }
  // Publishes the completed record. Returns its code, like all other methods.
  Code publish(const wl_error_t& record);
  Code publish(wl_error_t record, uint32_t faultyRank) {
    return publish(recordOf(record, faultyRank));
  }
  // Refuses the operation in progress and publishes nothing. The communicator stays as it was.
  Code refuse(Code code, const char* why, wl_error_t* error) const;

  Code publishAborted(const char* reason);
  // The rank's handle is being closed.
  Code publishClosed();
  // The peer left without entering the collective that this rank waits in.
  Code publishMissed(uint32_t peer);
  // The peer of a one-sided operation has left.
  Code publishLeft(const Descriptor& current);
  // `signal` is the last value seen.
  Code publishMissingSignal(const Descriptor& current, uint32_t signal, int64_t limitNs);
  // Writes the text of `record`, which names the faulty ranks. `behind`: they have not entered the
  // operation. Otherwise they have not finished it. `devices`: its steps, if devices run it, or
  // nullptr.
  Code publishDeadlineExceeded(const Descriptor& current, wl_error_t record, bool behind,
                               const Steps* devices, int64_t limitNs);
  // Two ranks stated different operations, and both have entered as `sequence`.
  Code publishMismatch(uint32_t a, uint32_t b, uint64_t sequence);
  // `other` left without entering the operation that `caller` entered as `sequence`.
  Code publishUnmatched(uint32_t caller, uint32_t other, uint64_t sequence);
  // This rank cannot read the peer's memory; `reason` is the errno.
  Code publishUnread(uint32_t peer, int reason);
  // No data moves between this rank and the peer, on another host.
  Code publishUnmoved(uint32_t peer, int64_t limitNs);
  // The peer's process has ended, with all its ranks.
  Code publishLost(uint32_t peer);
  // This rank lacks a resource that the operation needs.
  Code publishResource(const char* why);
  Code publishNoMemory();
  // This rank's device failed.
  Code publishDevice(const wl_error_t& error);
  // The operation waits `why`, such as "for its turn", because of the faulty ranks.
  Code publishBusy(const std::vector<uint32_t>& faultyRanks, const char* why, int64_t limitNs);
  // A core of the faulty rank broke a rule of the target.
  Code publishBreach(uint32_t faultyRank, const char* broken);

 private:
  // Record about the operation in progress, which failed on this rank because of `why`.
  wl_error_t failedFor(Code code, const char* why) const;
  // Publishes a Mismatch of two ranks in the operation that `caller` entered as `sequence`.
  Code publishDisagreement(wl_error_t record, uint32_t caller, uint32_t other, uint64_t sequence);

  Group& group_;
  const uint32_t rank_;
  const State& state_;
};

}  // namespace windlass
