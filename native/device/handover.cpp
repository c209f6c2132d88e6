// SPDX-License-Identifier: Apache-2.0
// Steps that ranks take together on the host while their devices run an operation.
#include <unistd.h>

#include <cstring>
#include <new>

#include "native/base/clock.h"
#include "native/base/text.h"
#include "native/core/launch/kernels.h"
#include "native/core/names.h"
#include "native/device/enqueuing.h"
#include "native/device/offload_seats.h"
#include "native/device/rank_waits.h"
#include "windlass/experts.h"

namespace windlass {
namespace {

constexpr int64_t kTurnLookNs = 20'000'000;
// Time for operations on streams to end after their communicator has ended.
constexpr int64_t kEndLimitNs = 2'000'000'000;

}  // namespace

class Comm::Handover final : public OffloadPeers {
 public:
  Handover(Comm& comm, Deadline& deadline)
      : comm_(comm),
        deadline_(deadline),
        wait_(comm.group(), comm.rank(), clockNs() + deadline.left(clockNs())) {}

  DeviceWait& wait() override { return wait_; }

  uint32_t rank() const override { return comm_.rank(); }
  uint32_t ranks() const override { return comm_.group().ranks(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    if (bytes > OffloadLine::kMostBytes)
      return fail(error, WL_INVALID_ARGUMENT, "a rank states %llu bytes at most at a time",
                  static_cast<unsigned long long>(OffloadLine::kMostBytes));
    OffloadLine& line = lineOf(rank());
    // The buffer's content is two turns old. Every rank that is in the last turn has read it.
    const uint64_t turn = line.turn.load(std::memory_order_relaxed);
    std::memcpy(line.said[turn & 1], own, bytes);
    line.turn.store(turn + 1, std::memory_order_seq_cst);
    comm_.own_.done.word.fetch_add(0, std::memory_order_seq_cst);
    comm_.group().wakeSleepers();
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      const OffloadLine& other = lineOf(peer);
      const auto told = [&] { return other.turn.load(std::memory_order_acquire) > turn; };
      if (Code code = comm_.wait(told, peer, deadline_); code != WL_OK)
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
  bool goesOn() override {
    return comm_.group().failure() == nullptr && !comm_.closes() && deadline_.left(clockNs()) > 0;
  }
  int64_t leftNs() override { return deadline_.left(clockNs()); }
  Code ended(const OffloadProgress& progress) override {
    comm_.progress_ = &progress;
    const Code code = comm_.ended(deadline_, clockNs());
    comm_.progress_ = nullptr;
    return code;
  }
  Code busy(const std::vector<uint32_t>& ranks, const char* why) override {
    const std::vector<int32_t> culprits(ranks.begin(), ranks.end());
    return comm_.failures_.publishBusy(culprits.data(), static_cast<uint32_t>(culprits.size()), why,
                                       deadline_.limitNs());
  }

 private:
  OffloadLine& lineOf(uint32_t rank) const { return comm_.group().block().offloadLine(rank); }

  Comm& comm_;
  Deadline& deadline_;
  RankWaits wait_;
};

// Operations of two groups that span the same processes take these processes' devices in the same
// order. Otherwise each could wait for the other.
Code Comm::awaitProcessesBefore(Deadline& deadline) {
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!group_->isProcessBefore(peer, rank_)) continue;
    const OffloadLine& theirs = group_->block().offloadLine(peer);
    const auto hasTaken = [&] {
      return theirs.taken.load(std::memory_order_acquire) >= sequence_;
    };
    if (Code code = wait(hasTaken, peer, deadline); code != WL_OK) return code;
  }
  return WL_OK;
}

Code Comm::awaitTurn(Deadline& deadline) {
  if (Code code = awaitProcessesBefore(deadline); code != WL_OK) return code;
  OffloadSeats::Busy busy = {};
  const char* name = operationName(current_.operation());
  while (!group_->offloadSeats().take(sequence_, name, kTurnLookNs, &busy)) {
    const int64_t now = clockNs();
    if (group_->failure() == nullptr && deadline.left(now) <= 0) {
      char why[WL_ERROR_MESSAGE];
      Text(why, sizeof why)
          .add("for its turn: rank %u's device runs %s of another communicator of this process, "
               "and runs one operation at a time",
               busy.rank, busy.with);
      const auto culprit = static_cast<int32_t>(busy.rank);
      return failures_.publishBusy(&culprit, 1, why, deadline.limitNs());
    }
    if (Code code = ended(deadline, now); code != WL_OK) return code;
  }
  group_->block().offloadLine(rank_).taken.store(sequence_, std::memory_order_seq_cst);
  own_.done.word.fetch_add(0, std::memory_order_seq_cst);
  group_->wakeSleepers();
  return WL_OK;
}

namespace {

void bringTable(const Call& call, Offload::Buffers* buffers) {
  auto* const table = static_cast<ExpertTable*>(const_cast<void*>(call.args.aux));
  buffers->parts = table;
  buffers->partBytes = ExpertTable::bytes(table->shape);
}

void bringTransfer(OffloadedTransfer& transfer, Offload::Buffers* buffers) {
  buffers->transfer = &transfer;
  buffers->inBytes = transfer.readBytes();
  buffers->outBytes = transfer.writtenBytes();
  buffers->parts = transfer.table();
  buffers->partBytes = transfer.tableBytes();
}

}  // namespace

Code Comm::offload(const Call& call, uint32_t kernel, uint32_t phases, const Launch& launch,
                   Deadline& deadline) {
  if (Code code = awaitTurn(deadline); code != WL_OK) return code;
  // Other operations have no entry in the table of collectives, and no root.
  const Collective* collective = collectiveOf(call.descriptor.operation());
  const auto brings = [&](Holds Collective::*which, const void* data) {
    return data != nullptr &&
           (collective == nullptr || !isRoots(collective->*which) || launch.root == rank_);
  };
  Offload::Operation operation = {operationName(call.descriptor.operation()),
                                  kernel,
                                  &launch,
                                  phases,
                                  group_->config().offloadCores,
                                  {},
                                  call.descriptor.operation(),
                                  sequence()};
  const bool isTransfer = call.phases > 0;
  const bool isPlain = !isTransfer && call.launch == nullptr;
  operation.buffers.launch = call.launch;
  if (isPlain && brings(&Collective::in, call.args.in)) {
    operation.buffers.in = call.args.in;
    operation.buffers.inBytes = call.inExtent(group_->ranks());
  }
  if (isPlain && brings(&Collective::out, call.args.out)) {
    operation.buffers.out = call.args.out;
    operation.buffers.outBytes = call.outExtent(group_->ranks());
  }
  if (call.parts != nullptr) {
    operation.buffers.parts = &group_->block().parts(rank_, sequence_);
    operation.buffers.partBytes = PartTable::bytes(launch.ranks);
  }
  if (call.descriptor.operation() == WL_OP_EXPERT_DISPATCH ||
      call.descriptor.operation() == WL_OP_EXPERT_COMBINE)
    bringTable(call, &operation.buffers);
  Handover peers(*this, deadline);
  wl_error_t error = blankError();
  uint32_t culprit = kNobody;
  const Code code = orNoMemory([&] {
    if (isTransfer) bringTransfer(*call.offloaded, &operation.buffers);
    Offload& own = group_->offloadSeats().offload(rank_);
    if (call.on != nullptr)
      return own.enqueue(*group_, operation, deadline.limitNs(), *call.on, peers, &culprit, &error);
    return own.run(operation, peers, &culprit, &error);
  });
  // No rank is at fault: all ranks refuse the operation, or `peers` ended it.
  if (code != WL_OK && culprit == kNobody) {
    failures_.refuse(code, error.message, call.error);
    if (error.culprit_count > 0) nameCulprit(call.error, static_cast<uint32_t>(error.culprits[0]));
    return code;
  }
  if (code == WL_OK) return code;
  // If the device has no error, a wait of this rank ended the operation, and the failure record
  // says why.
  if (culprit == rank_) return error.code == WL_OK ? code : failures_.publishDevice(error);
  // The culprit publishes the reason and ends the communicator.
  owesWhy_ = culprit;
  return wait([] { return false; }, culprit, deadline);
}

Code Comm::awaitEnqueued(uint64_t ticket, int64_t limitNs, bool* isOver, wl_error_t* error) {
  Offload* const offload =
      group_->config().offloadCores == 0 ? nullptr : group_->offloadSeats()[rank_].offload.get();
  Enqueuing* const enqueuing = offload == nullptr ? nullptr : offload->enqueuing();
  *isOver = false;
  if (enqueuing == nullptr || !enqueuing->has(ticket)) {
    return fail(error, WL_INVALID_ARGUMENT, "ticket %llu names nothing that rank %u has enqueued",
                static_cast<unsigned long long>(ticket), rank_);
  }
  const Code code = enqueuing->await(ticket, limitNs, isOver);
  // Nobody else waits for the watching thread, so this call checks if the driver hangs.
  const int64_t sinceNs = clockNs() - group_->config().deadlineNs - callLimitNs;
  wl_error_t lost = blankError();
  if (code == WL_OK && !*isOver && offload->giveUp(sinceNs, &lost)) {
    failures_.publishDevice(lost);
    return status(error);
  }
  return code == WL_OK ? WL_OK : status(error);
}

void Comm::endEnqueued() {
  if (group_->config().offloadCores == 0) return;
  const OffloadSeat& seat = group_->offloadSeats()[rank_];
  Enqueuing* const enqueuing = seat.offload == nullptr ? nullptr : seat.offload->enqueuing();
  if (enqueuing == nullptr) return;
  if (seat.enqueued.load() != 0) endInFlight(seat.enqueued.load());
  seat.offload->endStreams();
}

void Comm::endInFlight(uint32_t count) {
  const OffloadSeat& seat = group_->offloadSeats()[rank_];
  wl_error_t record =
      errorOf(WL_ABORTED,
              "rank %u closed the communicator while %u operation%s that it had "
              "put on streams %s not over",
              rank_, count, count == 1 ? "" : "s", count == 1 ? "was" : "were");
  record.operation = own_.state.operation.load(std::memory_order_relaxed);
  record.observer = static_cast<int32_t>(rank_);
  record.sequence = sequence();
  nameCulprit(&record, rank_);
  group_->publishFailure(record);
  const int64_t untilNs = clockNs() + kEndLimitNs;
  while (seat.enqueued.load() != 0 && clockNs() < untilNs) usleep(100);
}

}  // namespace windlass
