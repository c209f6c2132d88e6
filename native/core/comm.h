// SPDX-License-Identifier: Apache-2.0
// One rank of a communicator: its handle, and the frame of each of its operations. Executors run
// what is inside (native/core/executor/executor.h).
#pragma once

#include <memory>
#include <new>

#include "native/core/host_moves.h"
#include "native/core/message/messages.h"
#include "native/core/peer_reads.h"
#include "native/core/rank/claims.h"
#include "native/core/rank/gate.h"
#include "native/core/rank/totals.h"
#include "native/core/rank/waits.h"
#include "native/core/workers.h"

namespace windlass {

// Minimum number of bytes, over all ranks, at which ranks claim items one by one. A claimed item
// may run on any rank's thread.
constexpr uint64_t kSharedWorkBytes = uint64_t{48} << 10;
// Minimum number of bytes, over all ranks, at which a rank rings sleeping peers before it moves
// data. Fewer bytes take about as long as a wake, so the ring waits for the operation's end.
constexpr uint64_t kLongWorkBytes = uint64_t{1} << 20;

struct Kernel;   // native/core/launch/kernels.h
enum class Executor : uint32_t;

// Aligned so that two ranks never share a cache line: each rank's thread writes its own Comm at
// every operation.
class alignas(kLine) Comm {
 public:
  Comm(std::shared_ptr<Group> group, uint32_t rank);

  uint32_t rank() const { return rank_; }
  Group& group() const { return *group_; }
  const std::shared_ptr<Group>& groupPointer() const { return group_; }
  Gate& gate() { return gate_; }
  Operation& operation() { return operation_; }
  const Operation& operation() const { return operation_; }
  Waits& waits() { return waits_; }
  RankFailures& failures() { return failures_; }
  Claims& claims() { return claims_; }
  Messages& messages() { return messages_; }
  const Totals& totals() const { return totals_; }
  // nullptr: a rank has one block, or memory was short.
  Workers* workers() const { return workers_.get(); }
  // Moves to other hosts. nullptr: the group is on one host, or memory was short.
  HostMoves* hostMoves() const { return hostMoves_.get(); }
  // nullptr: all ranks live in this process, or memory was short.
  PeerReads* peerReads() const { return peerReads_.get(); }

  // Runs a kernel of the target as this rank's next operation.
  Code run(const Kernel& kernel, const Call& call);
  // Begins and ends the rank's next operation, in which all ranks take part. Between the two, the
  // rank states the operation to the other ranks and does its part. `isLong`: the operation took
  // long without a wait.
  Code begin(const Call& call);
  Code finish(Code code, bool isLong, wl_error_t* error);
  // Makes the rank's entry into the operation visible to peers.
  void publishEntry() {
    operation_.publishEntry();
    recorder_.stampEntry();
  }

  // Begins an operation that takes no sequence; finish() ends it. `bytes`: the bytes that it moves.
  Code beginAlone(const Descriptor& descriptor, uint64_t bytes, wl_error_t* error);
  // Like beginAlone(), but the caller calls stampEntry() once others no longer wait for it.
  Code beginUnstamped(const Descriptor& descriptor, uint64_t bytes, wl_error_t* error);
  void stampEntry() { recorder_.stampEntry(); }
  // Begins and ends an operation that the flight recorder does not record.
  Code beginUnrecorded(const Descriptor& descriptor, wl_error_t* error);
  Code end(Code code, wl_error_t* error);
  // Returns the result of `run`, which continues the operation. If `run` throws std::bad_alloc, the
  // operation fails for lack of memory.
  template <class Run>
  Code orNoMemory(Run&& run) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return failures_.publishNoMemory();
    }
  }

  // Begins and ends a shrink. Only a rank whose communicator has failed begins one, with no other
  // thread inside.
  Code beginShrink(wl_error_t* error);
  Code endShrink(Code code);
  // Closes the handle. Returns Mismatch if ranks called different operations and no call of this
  // rank has reported it; this rank has then left. Returns DeadlineExceeded if a call in flight
  // does not leave within 60 s.
  Code close(wl_error_t* error);

 private:
  // Ends the operation's record and adds it to the totals.
  void leave(Code code, int64_t waitedNs, bool stampEnd);

  const std::shared_ptr<Group> group_;
  const uint32_t rank_;
  RankFailures failures_;
  FlightRecorder& recorder_;
  const Executor executor_;  // runs this rank's operations
  Gate gate_;
  Operation operation_;
  Waits waits_;
  Claims claims_;
  Messages messages_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<HostMoves> hostMoves_;
  std::unique_ptr<PeerReads> peerReads_;
  Totals totals_;  // last, since it is large
};

}  // namespace windlass
