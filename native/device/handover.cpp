// SPDX-License-Identifier: Apache-2.0
#include "native/device/handover.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "native/base/clock.h"
#include "native/base/text.h"
#include "native/core/failure_text.h"
#include "native/core/launch/kernels.h"
#include "native/core/names.h"
#include "native/device/device_wait.h"
#include "native/device/enqueuing.h"
#include "native/device/offload_seats.h"
#include "windlass/experts.h"

namespace windlass {
namespace {

constexpr int64_t kTurnLookNs = 20'000'000;
// Time for operations on streams to end after their communicator has ended.
constexpr int64_t kEndLimitNs = 2'000'000'000;

OffloadLine& lineOf(Comm& comm, uint32_t rank) {
  return comm.group().block().offloadLine(rank);
}

// True if that rank has its turn of the operation in progress.
bool hasTurn(Comm& comm, uint32_t rank) {
  return lineOf(comm, rank).taken.load(std::memory_order_acquire) >=
         comm.operation().wholeSequence();
}

// Rings the ranks that wait for this one, after its stores.
void ringPeers(Comm& comm) {
  comm.group().lines(comm.rank()).done.word.fetch_add(0, std::memory_order_seq_cst);
  comm.group().wakeSleepers();
}

// The time at which a deadline passes, at most the largest time.
int64_t endOf(Deadline& deadline, int64_t now) {
  const int64_t left = deadline.left(now);
  return left > INT64_MAX - now ? INT64_MAX : now + left;
}

class Handover final : public OffloadPeers, public Steps {
 public:
  Handover(Comm& comm, Deadline& deadline)
      : comm_(comm),
        deadline_(deadline),
        wait_(comm.group(), comm.rank(), endOf(deadline, clockNs())) {}

  DeviceWait& wait() override { return wait_; }

  uint32_t rank() const override { return comm_.rank(); }
  uint32_t ranks() const override { return comm_.group().ranks(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    if (bytes > OffloadLine::kMostBytes)
      return fail(error, WL_INVALID_ARGUMENT, "a rank states %llu bytes at most at a time",
                  text(OffloadLine::kMostBytes));
    OffloadLine& line = lineOf(comm_, rank());
    // Overwrites this rank's statement of two turns ago. All ranks have read it, because all have
    // stated something in the turn after it.
    const uint64_t turn = line.turn.load(std::memory_order_relaxed);
    std::memcpy(line.said[turn & 1], own, bytes);
    line.turn.store(turn + 1, std::memory_order_seq_cst);
    ringPeers(comm_);
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      const OffloadLine& other = lineOf(comm_, peer);
      const auto told = [&] { return other.turn.load(std::memory_order_acquire) > turn; };
      if (Code code = comm_.waits().wait(told, peer, deadline_); code != WL_OK)
        return fail(error, code, "rank %u waited in vain for rank %u", rank(), peer);
      std::memcpy(static_cast<unsigned char*>(everyones) + peer * bytes, other.said[turn & 1],
                  bytes);
    }
    return WL_OK;
  }
  uint32_t firstBeside(uint32_t rank) const override {
    uint32_t first = 0;
    while (!comm_.group().liveTogether(first, rank)) ++first;
    return first;
  }
  // False only if ended() gives a reason.
  bool goesOn() override {
    return comm_.group().failure() == nullptr && !comm_.gate().closes() && leftNs() > 0;
  }
  int64_t leftNs() override { return deadline_.left(clockNs()); }
  Code ended(const OffloadProgress& progress) override {
    progress_ = &progress;
    const Code code = comm_.waits().ended(deadline_, clockNs());
    progress_ = nullptr;
    return code;
  }
  Code busy(const std::vector<uint32_t>& ranks, const char* why) override {
    return comm_.failures().publishBusy(ranks, why, deadline_.limitNs());
  }

  // The progress that the device has reported.
  uint32_t count() const override { return progress_ == nullptr ? 0 : progress_->phases; }
  uint32_t over(uint32_t rank) const override { return progress_->ranks[rank].over; }
  bool areOfDevices() const override { return progress_ != nullptr; }
  void write(Text& out, const wl_error_t& record) const override {
    writeProgress(out, *progress_, record);
  }
  // A rank waits for a peer to get its turn, to state its next step, or to say why its device
  // failed.
  bool isUnmet(uint32_t peer) const override {
    if (owesWhy_ != kNobody) return peer == owesWhy_;
    const uint32_t ranks = comm_.group().ranks();
    const auto stated = [&](uint32_t rank) {
      return lineOf(comm_, rank).turn.load(std::memory_order_acquire);
    };
    if (!hasTurn(comm_, peer)) {
      for (uint32_t rank = 0; rank < ranks; ++rank)
        if (comm_.group().isProcessBefore(rank, peer) && !hasTurn(comm_, rank)) return false;
      return true;
    }
    uint64_t fewest = stated(comm_.rank());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (!hasTurn(comm_, rank)) return false;
      fewest = std::min(fewest, stated(rank));
    }
    return stated(peer) == fewest && fewest < stated(comm_.rank());
  }

  // Waits until `faultyRank`, whose device fails the operation, says why and ends the communicator.
  Code awaitReason(uint32_t faultyRank) {
    owesWhy_ = faultyRank;
    return comm_.waits().wait([] { return false; }, faultyRank, deadline_);
  }

 private:
  Comm& comm_;
  Deadline& deadline_;
  DeviceWait wait_;
  const OffloadProgress* progress_ = nullptr;
  uint32_t owesWhy_ = kNobody;
};

// Operations of two groups that span the same processes take these processes' devices in the same
// order. Otherwise each could wait for the other.
Code awaitProcessesBefore(Comm& comm, Deadline& deadline) {
  for (uint32_t peer = 0; peer < comm.group().ranks(); ++peer) {
    if (!comm.group().isProcessBefore(peer, comm.rank())) continue;
    const auto has = [&] { return hasTurn(comm, peer); };
    if (Code code = comm.waits().wait(has, peer, deadline); code != WL_OK) return code;
  }
  return WL_OK;
}

Code awaitTurn(Comm& comm, Deadline& deadline) {
  if (Code code = awaitProcessesBefore(comm, deadline); code != WL_OK) return code;
  OffloadSeats::Busy busy = {};
  const uint64_t sequence = comm.operation().wholeSequence();
  const char* name = operationName(comm.operation().current().operation());
  while (!comm.group().offloadSeats().take(sequence, name, kTurnLookNs, &busy)) {
    const int64_t now = clockNs();
    if (comm.group().failure() == nullptr && deadline.left(now) <= 0) {
      char why[WL_ERROR_MESSAGE];
      Text(why, sizeof why)
          .add("for its turn: rank %u's device runs %s of another communicator of this process, "
               "and runs one operation at a time",
               busy.rank, busy.with);
      return comm.failures().publishBusy({busy.rank}, why, deadline.limitNs());
    }
    if (Code code = comm.waits().ended(deadline, now); code != WL_OK) return code;
  }
  lineOf(comm, comm.rank()).taken.store(sequence, std::memory_order_seq_cst);
  ringPeers(comm);
  return WL_OK;
}

// Memory of an operation that is neither a transfer nor a launch.
DeviceBuffers plainBuffers(Comm& comm, const Call& call, const Launch& launch) {
  DeviceBuffers buffers = {};
  const int32_t operation = call.descriptor.operation();
  // Other operations have no entry in the table of collectives, and no root.
  const Collective* collective = collectiveOf(operation);
  const auto brings = [&](Holds Collective::*which, const void* data) {
    return data != nullptr && (collective == nullptr || !isRoots(collective->*which) ||
                               launch.root == comm.rank());
  };
  if (brings(&Collective::in, call.args.in)) {
    buffers.in = call.args.in;
    buffers.inBytes = call.inExtent(launch.ranks);
  }
  if (brings(&Collective::out, call.args.out)) {
    buffers.out = call.args.out;
    buffers.outBytes = call.outExtent(launch.ranks);
  }
  if (call.parts != nullptr) {
    buffers.parts = &comm.group().block().parts(comm.rank(), comm.operation().wholeSequence());
    buffers.partBytes = PartTable::bytes(launch.ranks);
  }
  if (launch.op == ReduceOp::kPremultipliedSum)
    __builtin_memcpy(&buffers.factor, &call.factor, sizeof call.factor);
  if (operation == WL_OP_EXPERT_DISPATCH || operation == WL_OP_EXPERT_COMBINE) {
    auto* const table = static_cast<ExpertTable*>(const_cast<void*>(call.args.aux));
    buffers.parts = table;
    buffers.partBytes = ExpertTable::bytes(table->shape);
  }
  return buffers;
}

}  // namespace

Code offload(Comm& comm, const Call& call, uint32_t kernel, uint32_t phases, const Launch& launch,
             Deadline& deadline) {
  Group& group = comm.group();
  const uint32_t rank = comm.rank();
  Handover peers(comm, deadline);
  const ShownSteps shown(comm.waits(), peers);
  if (Code code = awaitTurn(comm, deadline); code != WL_OK) return code;
  DeviceOperation operation = {operationName(call.descriptor.operation()),
                               kernel,
                               &launch,
                               phases,
                               group.config().offloadCores,
                               {},
                               call.descriptor.operation(),
                               comm.operation().sequence(),
                               call.on,
                               &group,
                               deadline.limitNs()};
  DeviceBuffers& buffers = operation.buffers;
  if (call.phases > 0) {
    OffloadedTransfer& own = *call.offloaded;
    buffers = {nullptr,     own.readBytes(),  nullptr, own.writtenBytes(),
               own.table(), own.tableBytes(), &own};
  } else if (call.launch != nullptr) {
    buffers.launch = call.launch;
  } else {
    buffers = plainBuffers(comm, call, launch);
  }
  wl_error_t error = blankError();
  uint32_t faultyRank = kNobody;
  const Code code = comm.orNoMemory([&] {
    return group.offloadSeats().offload(rank).run(operation, peers, &faultyRank, &error);
  });
  if (code == WL_OK) return code;
  // No rank is at fault: all ranks refuse the operation, or `peers` ended it.
  if (faultyRank == kNobody) {
    comm.failures().refuse(code, error.message, call.error);
    if (error.faulty_rank_count > 0)
      nameFaultyRank(call.error, static_cast<uint32_t>(error.faulty_ranks[0]));
    return code;
  }
  // If the device has no error, a wait of this rank ended the operation, and the failure record
  // says why.
  if (faultyRank == rank) return error.code == WL_OK ? code : comm.failures().publishDevice(error);
  return peers.awaitReason(faultyRank);
}

Code awaitEnqueued(Comm& comm, uint64_t ticket, int64_t limitNs, bool* isOver, wl_error_t* error) {
  Group& group = comm.group();
  Offload* const offload =
      group.config().offloadCores == 0 ? nullptr : group.offloadSeats()[comm.rank()].offload.get();
  Enqueuing* const enqueuing = offload == nullptr ? nullptr : offload->enqueuing();
  *isOver = false;
  if (enqueuing == nullptr || !enqueuing->has(ticket)) {
    return fail(error, WL_INVALID_ARGUMENT, "ticket %llu names nothing that rank %u has enqueued",
                text(ticket), comm.rank());
  }
  const Code code = enqueuing->await(ticket, limitNs, isOver);
  // Nobody else waits for the watching thread, so this call checks if the driver hangs.
  const int64_t sinceNs = clockNs() - group.config().deadlineNs - callLimitNs;
  wl_error_t lost = blankError();
  if (code == WL_OK && (*isOver || !offload->giveUp(sinceNs, &lost))) return WL_OK;
  if (code == WL_OK) comm.failures().publishDevice(lost);
  return comm.gate().status(error);
}

void OffloadSeats::endEnqueued(Comm& comm) {
  const OffloadSeat& seat = seats_[comm.rank()];
  if (seat.offload == nullptr) return;
  if (const uint32_t count = seat.enqueued.load(); count != 0) {
    comm.failures().publish(
        errorOf(WL_ABORTED,
                "rank %u closed the communicator while %u operation%s that it had put on streams "
                "%s not over",
                comm.rank(), count, count == 1 ? "" : "s", count == 1 ? "was" : "were"),
        comm.rank());
    const int64_t untilNs = clockNs() + kEndLimitNs;
    while (seat.enqueued.load() != 0 && clockNs() < untilNs) usleep(100);
  }
  DeviceWait waits(comm.group(), comm.rank());
  seat.offload->endStreams(waits);
}

}  // namespace windlass
