// SPDX-License-Identifier: Apache-2.0
// A plan bound to memory: made once by all ranks together, run many times.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "native/core/comm.h"
#include "native/device/offload_seats.h"
#include "native/device/offloaded_transfer.h"
#include "native/hosts/far.h"
#include "native/transfer/peers.h"
#include "native/transfer/progress.h"
#include "native/transfer/stages.h"
#include "native/transfer/table.h"

namespace windlass {

// What a rank's peers touch while a transfer runs.
struct BoundPlan {
  PlanTable table;
  Stages stages;
  std::shared_ptr<Progress> progress;
  std::unique_ptr<FarPlan> far;  // where any rank reads ordinary memory of other processes
  OwnedMemory scratch;
  std::vector<OffloadedTransfer> offloaded;  // where ranks' devices run it: for each operation
};

class Transfer {
 public:
  // Empty until created.
  explicit Transfer(Comm& comm) : comm_(comm), group_(comm.groupPointer()) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  // Collective. All ranks succeed, or all fail with the first failing rank's error. `out` belongs
  // to this communicator; nullptr where it found no memory, which all ranks are told.
  static Code create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                     Transfer* out, wl_error_t* error);

  // One operation for every kMostPhases phases.
  Code run(uint64_t version, int64_t deadlineNs, wl_error_t* error);
  // The same where ranks name transfers by numbers of their own, and a version or none; where they
  // don't agree, nothing moves, and all ranks get the same error. *version: what this rank names,
  // then what all do once all have entered, else Named::kAny.
  Code move(uint64_t number, int64_t* version, int64_t deadlineNs, wl_error_t* error);
  // How many moves have begun: every rank has entered. Any thread.
  uint64_t begun() const;
  // Of one rank, or of all of this process with `rank` below 0; see Progress::addMoved.
  void moved(int32_t rank, uint64_t* moved, uint64_t count) const;
  // Whether this process sees how far the rank's targets are written.
  bool seesProgress(int32_t rank) const {
    return peers_->progress(static_cast<uint32_t>(rank)) != nullptr;
  }
  int32_t ranks() const { return static_cast<int32_t>(group_->ranks()); }
  // Whether the rank registered such a source binding, and which.
  bool source(int32_t rank, uint64_t index, PeerView* view) const {
    return peers_->source(rank, static_cast<int64_t>(index), view);
  }
  // Runs `body`, which reads sources that peers keep until nobody is inside a call.
  template <class Body>
  Code readSources(wl_error_t* error, Body&& body) {
    return comm_.readPeers(Descriptor::of(WL_OP_LINK_CHECK, 0), error, body);
  }
  // Inside readSources(): body(device, error) by this rank's own, where ranks have devices; one
  // that has failed ends the communicator. Throws std::bad_alloc.
  Code haveDevice(const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error);
  // Where this process finds what `rank` names; nullptr where that is in another process alone.
  void* addressOf(int32_t rank, Place place) const;
  uint64_t stagingBytes() const { return plan_->stages.bytes(); }
  const PlanTable& table() const { return plan_->table; }

 private:
  friend class Registration;

  Code enter(Call* call, const Named& own);
  Code goOn(Call* call);
  Code runOperation(Call* call, uint32_t n);
  // What a rank named in the last operation.
  const Named& named(uint32_t rank) const;
  Code conclude(Code code, const Named& own, int64_t* version, int64_t deadlineNs,
                wl_error_t* error);

  Comm& comm_;
  const std::shared_ptr<Group> group_;
  std::atomic<uint64_t> moves_{0};     // that have begun and returned
  // moves_ | kEntering | sequence of the move in progress; 0: none.
  std::atomic<uint64_t> entering_{0};
  uint32_t id_ = 0;  // sequence of the registration
  std::shared_ptr<BoundPlan> plan_;
  std::shared_ptr<const Peers> peers_;
  uint32_t phases_ = 1;              // of the rank that needs most
  std::vector<uint64_t> workBytes_;  // of all ranks, for each kMostPhases phases
  uint64_t targetBytes_ = 0;         // that this rank's targets get
};

}  // namespace windlass
