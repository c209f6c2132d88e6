// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank_failures.h"

#include "native/base/target.h"

namespace windlass {

template <class Write>
Code RankFailures::publishDisagreement(uint32_t caller, uint32_t other, uint64_t sequence,
                                       Write&& write) {
  const int32_t culprits[2] = {static_cast<int32_t>(std::min(caller, other)),
                               static_cast<int32_t>(std::max(caller, other))};
  const Descriptor& called = group_.lines(caller).entry[sequence & 1].descriptor;
  wl_error_t record = recordOf(WL_MISMATCH, culprits, 2, write);
  record.operation = called.operation();
  record.sequence = static_cast<uint32_t>(sequence);
  group_.publishFailure(record);
  return WL_MISMATCH;
}

Code RankFailures::refuse(Code code, const char* why, wl_error_t* error) const {
  const auto write = [&](Text& out) { writeWhy(out, rank_, state_, why); };
  return copyError(error, recordOf(code, nullptr, 0, write), nullptr);
}

Code RankFailures::publishAborted(const char* reason) {
  return publish(WL_ABORTED, rank_, [&](Text& out) { writeAborted(out, rank_, reason); });
}

Code RankFailures::publishClosed() {
  return publish(WL_ABORTED, rank_, [&](Text& out) { writeClosed(out, rank_, state_); });
}

Code RankFailures::publishMissed(uint32_t peer) {
  return publish(WL_ABORTED, peer, [&](Text& out) { writeMissed(out, peer, rank_, state_); });
}

Code RankFailures::publishLeft(const Descriptor& current) {
  return publish(WL_ABORTED, static_cast<uint32_t>(current.root()),
                 [&](Text& out) { writeLeft(out, rank_, current); });
}

Code RankFailures::publishSignalTimeout(const Descriptor& current, uint32_t signal,
                                        int64_t limitNs) {
  return publish(WL_TIMEOUT, static_cast<uint32_t>(current.root()), [&](Text& out) {
    writeSignalTimeout(out, {group_, rank_, current, limitNs}, signal);
  });
}

Code RankFailures::publishMismatch(uint32_t a, uint32_t b, uint64_t sequence) {
  return publishDisagreement(
      a, b, sequence, [&](Text& out) { writeMismatch(out, group_, a, b, sequence); });
}

Code RankFailures::publishUnmatched(uint32_t caller, uint32_t other, uint64_t sequence) {
  return publishDisagreement(caller, other, sequence, [&](Text& out) {
    writeUnmatched(out, group_, caller, other, sequence);
  });
}

Code RankFailures::publishUnread(uint32_t peer, int reason) {
  const int32_t pid = group_.processOf(peer).pid;
  return publish(WL_ABORTED, peer,
                 [&](Text& out) { writeUnread(out, rank_, peer, pid, state_, reason); });
}

Code RankFailures::publishUnmoved(uint32_t peer, int64_t limitNs) {
  return publish(WL_TIMEOUT, peer, [&](Text& out) {
    out.add("rank %u: %s: the host of rank %u took nothing of it, or gave nothing, for %.1f s",
            rank_, OperationText(state_).text(), peer, static_cast<double>(limitNs) / 1e9);
  });
}

Code RankFailures::publishLost(uint32_t peer) {
  group_.publishFailure(endedOf(group_, peer));
  return WL_PEER_LOST;
}

Code RankFailures::publishResource(const char* why) {
  return publish(WL_RESOURCE, rank_, [&](Text& out) { out.add("rank %u: %s", rank_, why); });
}

Code RankFailures::publishNoMemory() {
  return publish(WL_RESOURCE, rank_, [&](Text& out) { out.add("%s", noMemory(rank_).message); });
}

Code RankFailures::publishDevice(const wl_error_t& error) {
  return publish(static_cast<Code>(error.code), rank_,
                 [&](Text& out) { writeWhy(out, rank_, state_, error.message); });
}

Code RankFailures::publishBusy(const int32_t* culprits, uint32_t count, const char* why,
                               int64_t limitNs) {
  return publish(WL_TIMEOUT, culprits, count, [&](Text& out) {
    out.add("rank %u waited %.3f s in %s %s", rank_, static_cast<double>(limitNs) / 1e9,
            OperationText(state_).text(), why);
  });
}

Code RankFailures::publishBreach(uint32_t culprit, const char* broken) {
  return publish(WL_DEVICE, culprit, [&](Text& out) {
    out.add("rank %u: %s breaks what %s allows: %s", culprit, OperationText(state_).text(),
            kTarget.limits.name, broken);
  });
}

}  // namespace windlass
