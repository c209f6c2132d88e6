// SPDX-License-Identifier: Apache-2.0
// A plan bound to memory. All ranks create it together and run it many times.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "native/base/far.h"
#include "native/core/comm.h"
#include "native/device/offload_seats.h"
#include "native/device/offloaded_transfer.h"
#include "native/transfer/peers.h"
#include "native/transfer/progress.h"
#include "native/transfer/stages.h"
#include "native/transfer/table.h"

namespace windlass {

// Memory that peers of a rank access while a transfer runs.
struct BoundPlan {
  PlanTable table;
  Stages stages;
  std::shared_ptr<Progress> progress;
  std::unique_ptr<FarPlan> far;  // set if any rank reads ordinary memory of other processes
  OwnedMemory scratch;
  std::vector<OffloadedTransfer> offloaded;  // one per operation; empty if the host runs them
};

class Transfer {
 public:
  // Not usable before create().
  explicit Transfer(Comm& comm) : comm_(comm), group_(comm.groupPointer()) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  // Collective. All ranks succeed, or all fail with the first failing rank's error. `out` was made
  // for this communicator. It is nullptr if its allocation failed, which then fails on all ranks.
  static Code create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                     Transfer* out, wl_error_t* error);

  // Runs the plan, with one operation for every kMostPhases phases.
  Code run(uint64_t version, int64_t deadlineNs, wl_error_t* error);
  // Like run(), for ranks that number transfers and may name a version. If they disagree, nothing
  // moves and all ranks get the same error. *version is this rank's version on entry. It becomes
  // that of all ranks once all have entered, otherwise Named::kAny.
  Code move(uint64_t number, int64_t* version, int64_t deadlineNs, wl_error_t* error);
  // Number of moves that every rank has entered. Thread-safe.
  uint64_t begun() const;
  // Bytes moved to targets of `rank`, or of all ranks of this process if it is negative. See
  // Progress::addMoved.
  void moved(int32_t rank, uint64_t* moved, uint64_t count) const;
  // True if this process sees the write progress of the rank's targets.
  bool seesProgress(int32_t rank) const {
    return peers_->progress(static_cast<uint32_t>(rank)) != nullptr;
  }
  int32_t ranks() const { return static_cast<int32_t>(group_->ranks()); }
  // Returns false if the rank registered no such source binding.
  bool source(int32_t rank, uint64_t index, PeerView* view) const {
    return peers_->source(rank, static_cast<int64_t>(index), view);
  }
  // Runs `body` on this rank only, unless the communicator has failed, and returns its result.
  // `body` may read peers' sources. Peers keep them until no rank is inside a call.
  template <class Body>
  Code readSources(wl_error_t* error, Body&& body) {
    const auto descriptor = Descriptor::of(WL_OP_LINK_CHECK, 0);
    if (Code code = comm_.beginUnrecorded(descriptor, error)) return code;
    const Code code = body();
    comm_.gate().leave();
    return code;
  }
  // Calls body(device, error) with this rank's device. Call inside readSources(), and only if ranks
  // have devices. A failed device ends the communicator. Throws std::bad_alloc.
  Code haveDevice(const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error);
  // Address in this process of the rank's `place`; nullptr if only another process has that memory.
  void* addressOf(int32_t rank, Place place) const;
  uint64_t stagingBytes() const { return plan_->stages.bytes(); }
  const PlanTable& table() const { return plan_->table; }

 private:
  friend class Registration;

  Code enter(Call* call, const Named& own);
  Code goOn(Call* call);
  Code runOperation(Call* call, uint32_t n);
  // Number and version that the rank stated in the last operation.
  const Named& named(uint32_t rank) const;
  Code conclude(Code code, const Named& own, int64_t* version, int64_t deadlineNs,
                wl_error_t* error);

  Comm& comm_;
  const std::shared_ptr<Group> group_;
  std::atomic<uint64_t> moves_{0};     // moves that began and returned
  // moves_ | kEntering | sequence of the move in progress; 0 if there is none.
  std::atomic<uint64_t> entering_{0};
  uint32_t id_ = 0;  // sequence of the registration
  std::shared_ptr<BoundPlan> plan_;
  std::shared_ptr<const Peers> peers_;
  uint32_t phases_ = 1;              // maximum over ranks
  std::vector<uint64_t> workBytes_;  // sum over ranks, per kMostPhases phases
  uint64_t targetBytes_ = 0;         // bytes that this rank's targets receive
};

}  // namespace windlass
