// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank/rank_failures.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native/base/target.h"
#include "native/core/failure_text.h"
#include "native/core/signal.h"

namespace windlass {
namespace {

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

wl_error_t RankFailures::recordOf(wl_error_t record) const {
  record.operation = state_.operation.load(std::memory_order_relaxed);
  record.observer = static_cast<int32_t>(rank_);
  record.sequence = state_.sequence.load(std::memory_order_relaxed);
  return record;
}

Code RankFailures::publish(const wl_error_t& record) {
  group_.publishFailure(recordOf(record));
  return static_cast<Code>(record.code);
}

wl_error_t RankFailures::failedFor(Code code, const char* why) const {
  return errorOf(code, "rank %u: %s: %s", rank_, OperationText(state_).text, why);
}

Code RankFailures::publishDisagreement(wl_error_t record, uint32_t caller, uint32_t other,
                                       uint64_t sequence) {
  addFaultyRank(&record, std::min(caller, other));
  record = recordOf(record, std::max(caller, other));
  record.operation = group_.lines(caller).entry[sequence & 1].descriptor.operation();
  record.sequence = static_cast<uint32_t>(sequence);
  group_.publishFailure(record);
  return WL_MISMATCH;
}

Code RankFailures::refuse(Code code, const char* why, wl_error_t* error) const {
  return copyError(error, recordOf(failedFor(code, why)), nullptr);
}

Code RankFailures::publishAborted(const char* reason) {
  return publish(errorOf(WL_ABORTED, "rank %u aborted the communicator: %s", rank_, reason), rank_);
}

Code RankFailures::publishClosed() {
  return publish(errorOf(WL_ABORTED, "rank %u closed its handle while %s was in progress", rank_,
                         OperationText(state_).text),
                 rank_);
}

Code RankFailures::publishMissed(uint32_t peer) {
  return publish(errorOf(WL_ABORTED,
                         "rank %u closed the communicator, and rank %u waits for it in %s; every "
                         "rank must call the same operations before it closes",
                         peer, rank_, OperationText(state_).text),
                 peer);
}

Code RankFailures::publishLeft(const Descriptor& current) {
  return publish(errorOf(WL_ABORTED,
                         "rank %u closed the communicator, and rank %u needs it in %s; a rank "
                         "stays until its peers need it no more",
                         current.peer(), rank_, Described(current).text),
                 current.peer());
}

Code RankFailures::publishMissingSignal(const Descriptor& current, uint32_t signal,
                                        int64_t limitNs) {
  const uint32_t peer = current.peer();
  wl_error_t record = blankError(WL_DEADLINE_EXCEEDED);
  Text out(record.message, sizeof record.message);
  out.add("rank %u waited %.3f s in %s: rank %u has notified no more than %llu: ", rank_,
          seconds(limitNs), Described(current).text, peer,
          text(widened(signal, current.count)));
  addWhereabouts(out, group_, peer, true);
  out.add(". See what that rank is doing, or give a longer deadline");
  return publish(record, peer);
}

Code RankFailures::publishDeadlineExceeded(const Descriptor& current, wl_error_t record,
                                           bool behind, const Steps* devices, int64_t limitNs) {
  const auto count = static_cast<uint32_t>(record.faulty_rank_count);
  Text out(record.message, sizeof record.message);
  out.add("rank %u waited %.3f s in %s, operation #%u on %u ranks: ", rank_, seconds(limitNs),
          Described(current).text, state_.sequence.load(std::memory_order_relaxed),
          group_.ranks());
  for (uint32_t i = 0; i < std::min(count, kNamedRanks); ++i) {
    const auto faultyRank = static_cast<uint32_t>(record.faulty_ranks[i]);
    out.add("%srank %u %s: ", i == 0 ? "" : "; ", faultyRank,
            behind ? "has not come" : "has not finished");
    addWhereabouts(out, group_, faultyRank, count <= kDescribedRanks);
  }
  if (count > kNamedRanks) out.add("; and %u more", count - kNamedRanks);
  if (count == 0) out.add("every rank came; this rank was not scheduled in time");
  out.add(". See what %s doing, or give a longer deadline",
          count == 1 ? "that rank is" : "those ranks are");
  if (devices != nullptr) devices->write(out, record);
  return publish(record);
}

Code RankFailures::publishMismatch(uint32_t a, uint32_t b, uint64_t sequence) {
  wl_error_t record = blankError(WL_MISMATCH);
  Text out(record.message, sizeof record.message);
  writeMismatch(out, group_, a, b, sequence);
  return publishDisagreement(record, a, b, sequence);
}

Code RankFailures::publishUnmatched(uint32_t caller, uint32_t other, uint64_t sequence) {
  const Descriptor& called = group_.lines(caller).entry[sequence & 1].descriptor;
  const wl_error_t record =
      errorOf(WL_MISMATCH,
              "ranks disagree in operation #%u: rank %u calls %s, rank %u closed the communicator "
              "without it; every rank must call the same operations before it closes",
              static_cast<uint32_t>(sequence), caller, Described(called).text, other);
  return publishDisagreement(record, caller, other, sequence);
}

Code RankFailures::publishUnread(uint32_t peer, int reason) {
  wl_error_t record = blankError(WL_ABORTED);
  Text out(record.message, sizeof record.message);
  out.add("rank %u can't read what rank %u names in %s: process_vm_readv of process %d: %s; ",
          rank_, peer, OperationText(state_).text, group_.processOf(peer).pid,
          std::strerror(reason));
  if (reason == ESRCH)
    out.add("it lives, but its first thread, by whose number it is read, has ended; ");
  out.add(reason == EFAULT ? "memory that a call names stays mapped until the call returns"
                           : "WINDLASS_PEER_MEMORY=stage in all processes does without");
  return publish(record, peer);
}

Code RankFailures::publishUnmoved(uint32_t peer, int64_t limitNs) {
  return publish(errorOf(WL_DEADLINE_EXCEEDED,
                         "rank %u: %s: the host of rank %u took nothing of it, or gave nothing, "
                         "for %.1f s",
                         rank_, OperationText(state_).text, peer, seconds(limitNs)),
                 peer);
}

Code RankFailures::publishLost(uint32_t peer) {
  group_.publishFailure(endedOf(group_, peer));
  return WL_PEER_LOST;
}

Code RankFailures::publishResource(const char* why) {
  return publish(errorOf(WL_RESOURCE, "rank %u: %s", rank_, why), rank_);
}

Code RankFailures::publishNoMemory() {
  return publish(noMemory(rank_), rank_);
}

Code RankFailures::publishDevice(const wl_error_t& error) {
  return publish(failedFor(static_cast<Code>(error.code), error.message), rank_);
}

Code RankFailures::publishBusy(const std::vector<uint32_t>& faultyRanks, const char* why,
                               int64_t limitNs) {
  wl_error_t record = errorOf(WL_DEADLINE_EXCEEDED, "rank %u waited %.3f s in %s %s", rank_,
                              seconds(limitNs), OperationText(state_).text, why);
  for (const uint32_t faultyRank : faultyRanks) addFaultyRank(&record, faultyRank);
  return publish(record);
}

Code RankFailures::publishBreach(uint32_t faultyRank, const char* broken) {
  return publish(errorOf(WL_DEVICE, "rank %u: %s breaks what %s allows: %s", faultyRank,
                         OperationText(state_).text, kTarget.limits.name, broken),
                 faultyRank);
}

}  // namespace windlass
