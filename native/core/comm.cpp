// SPDX-License-Identifier: Apache-2.0
// Begin and end of a rank's calls, and of its handle.
#include "native/core/comm.h"

#include <sched.h>

#include "native/core/executor/executor.h"

namespace windlass {
namespace {

// Number of operations after which each rank adjusts its thread once.
constexpr uint64_t kAdjustThreadEvery = 64;

}  // namespace

Comm::Comm(std::shared_ptr<Group> group, uint32_t rank)
    : group_(std::move(group)),
      rank_(rank),
      failures_(*group_, rank),
      recorder_(group_->recorder(rank)),
      executor_(group_->config().inLineCores > 0 || group_->hosts() != nullptr
                    ? Executor::kOwnItems
                    : Executor::kCpu),
      gate_(*group_, rank, failures_),
      operation_(*group_, rank),
      waits_(*group_, rank, operation_, failures_),
      claims_(*group_, rank, operation_, waits_.waiter()),
      messages_(*this) {
  const uint32_t blocks = group_->config().blocks;
  if (blocks > 1) workers_.reset(new (std::nothrow) Workers(blocks - 1));
  if (group_->config().spansProcesses) peerReads_ = PeerReads::make(*this);
  if (group_->hosts() != nullptr) hostMoves_ = HostMoves::make(*this);
}

Code Comm::beginUnrecorded(const Descriptor& descriptor, wl_error_t* error) {
  if (Code code = gate_.admit(error); code != WL_OK) return code;
  operation_.begin(descriptor);
  group_->lines(rank_).state.core.store(sched_getcpu(), std::memory_order_relaxed);
  waits_.waiter().reset();
  return WL_OK;
}

Code Comm::begin(const Call& call) {
  if (Code code = beginUnrecorded(call.descriptor, call.error); code != WL_OK) return code;
  operation_.count();
  // Operations that only exchange words about host objects count as 0 bytes.
  const uint64_t bytes = call.parts == nullptr ? call.bytes : call.inBytes;
  recorder_.enter(operation_.sequence(), call.descriptor, call.workBytes == 0 ? 0 : bytes);
  return WL_OK;
}

Code Comm::beginUnstamped(const Descriptor& descriptor, uint64_t bytes, wl_error_t* error) {
  if (Code code = beginUnrecorded(descriptor, error); code != WL_OK) return code;
  recorder_.enter(operation_.sequence(), descriptor, bytes);
  return WL_OK;
}

Code Comm::beginAlone(const Descriptor& descriptor, uint64_t bytes, wl_error_t* error) {
  const Code code = beginUnstamped(descriptor, bytes, error);
  if (code == WL_OK) recorder_.stampEntry();
  return code;
}

Code Comm::end(Code code, wl_error_t* error) {
  if (code != WL_OK) code = gate_.failed(code, waits_.endedByClose(), error);
  gate_.leave();
  return code;
}

Code Comm::finish(Code code, bool isLong, wl_error_t* error) {
  if (code != WL_OK) code = gate_.failed(code, waits_.endedByClose(), error);
  const int64_t waitedNs = waits_.waiter().waitedNs();
  leave(code, waitedNs, code != WL_OK || waitedNs > 0 || isLong);
  const uint64_t sequence = operation_.wholeSequence();
  if (sequence % kAdjustThreadEvery == 0) waits_.waiter().adjustThread(sequence);
  gate_.leave();
  return code;
}

void Comm::leave(Code code, int64_t waitedNs, bool stampEnd) {
  const uint64_t bytes = recorder_.leave(code, waitedNs, stampEnd);
  totals_.add(operation_.current().operation(), code != WL_OK, bytes, waitedNs);
}

Code Comm::beginShrink(wl_error_t* error) {
  if (Code code = gate_.enter(error); code != WL_OK) return code;
  Code code = gate_.closes() ? gate_.status(error) : WL_OK;
  if (code == WL_OK && group_->failure() == nullptr) {
    code = fail(error, WL_INVALID_ARGUMENT,
                "rank %u: the communicator lives; shrink makes a new one once it has failed, or a "
                "rank has called abort",
                rank_);
  }
  if (code != WL_OK) {
    gate_.leave();
    return code;
  }
  operation_.begin(Descriptor::of(WL_OP_SHRINK, 0));
  gate_.resetAborted();
  waits_.waiter().reset();
  recorder_.enter(operation_.sequence(), operation_.current(), 0);
  recorder_.stampEntry();
  return WL_OK;
}

Code Comm::endShrink(Code code) {
  leave(code, 0, true);
  gate_.leave();
  return code;
}

Code Comm::close(wl_error_t* error) {
  if (Code code = gate_.shut(error); code != WL_OK) return code;
  if (group_->devices() != nullptr) group_->devices()->endEnqueued(*this);
  messages_.close();
  if (group_->failure() != nullptr) group_->dropRetired();
  if (!group_->leave(rank_)) return WL_OK;
  // If two ranks leave at the same time, the second to be marked sees the mark of the other.
  if (group_->failure() == nullptr) waits_.compareLast();
  workers_.reset();
  if (group_->devices() != nullptr) group_->devices()->close(rank_);
  return gate_.untoldMismatch(error);
}

}  // namespace windlass
