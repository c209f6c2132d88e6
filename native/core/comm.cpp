// SPDX-License-Identifier: Apache-2.0
// Entry, exit and end of a communicator, and the conditions that an item waits for before it runs.
#include "native/core/comm.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "native/base/target.h"
#include "native/core/executor.h"
#include "native/core/failure_text.h"
#include "native/core/names.h"
#include "native/device/offload_seats.h"

namespace windlass {
namespace {

constexpr int64_t kCloseLimitNs = 60'000'000'000;
// Checks of a signal before a core reports that it waits.
constexpr uint32_t kLooksInLine = 16;

}  // namespace

Comm::Comm(std::shared_ptr<Group> group, uint32_t rank)
    : group_(std::move(group)),
      rank_(rank),
      failures_(*group_, rank),
      own_(group_->lines(rank)),
      recorder_(group_->recorder(rank)),
      executor_(group_->config().deviceCores > 0 || group_->hosts() != nullptr ? Executor::kDevice
                                                                              : Executor::kCpu),
      sequence_(group_->config().firstSequence - 1),
      allEntered_(sequence_),
      waiter_(*group_, rank, *this) {
  const uint32_t blocks = group_->config().blocks;
  if (blocks > 1) workers_.reset(new (std::nothrow) Workers(blocks - 1));
  if (group_->config().spansProcesses) pulling_ = Pulling::make(*this);
  if (group_->hosts() != nullptr) hostMoves_ = HostMoves::make(*this);
}

InLine Comm::inLine(uint32_t core) const {
  return {rank_,
          core,
          group_->config().deviceCores,
          sequence(),
          group_->oversubscribed(),
          kLooksInLine,
          group_->block().deviceLines(),
          group_->config().deviceLineBytes()};
}

Code Comm::enterCall(wl_error_t* error) {
  State& state = own_.state;
  if (state.busy.exchange(1, std::memory_order_seq_cst) == 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "rank %u: another thread is inside %s on this communicator; a rank's operations are "
              "called by one thread at a time",
              rank_, operationName(state.operation.load(std::memory_order_relaxed)));
}

Code Comm::beginShrink(wl_error_t* error) {
  if (Code code = enterCall(error); code != WL_OK) return code;
  Code code = closes() ? status(error) : WL_OK;
  if (code == WL_OK && group_->failure() == nullptr) {
    code = fail(error, WL_INVALID_ARGUMENT,
                "rank %u: the communicator lives; shrink makes a new one once it has failed, or a "
                "rank has called abort",
                rank_);
  }
  if (code != WL_OK) {
    leaveCall();
    return code;
  }
  current_ = Descriptor::of(WL_OP_SHRINK, 0);
  shrinkAborted_.store(false, std::memory_order_relaxed);
  own_.state.operation.store(WL_OP_SHRINK, std::memory_order_relaxed);
  waiter_.reset();
  recorder_.enter(sequence(), current_, 0);
  recorder_.stampEntry();
  return WL_OK;
}

Code Comm::endShrink(Code code) {
  recorder_.leave(code, 0, true);
  leaveCall();
  return code;
}

Code Comm::begin(const Descriptor& descriptor, wl_error_t* error) {
  State& state = own_.state;
  if (Code code = enterCall(error); code != WL_OK) return code;
  if (closes() || group_->failure() != nullptr) {
    const Code code = status(error);
    if (code != WL_CLOSED) told_.store(true, std::memory_order_relaxed);
    leaveCall();
    return code;
  }
  current_ = descriptor;
  state.operation.store(descriptor.operation(), std::memory_order_relaxed);
  state.core.store(sched_getcpu(), std::memory_order_relaxed);
  waiter_.reset();
  return WL_OK;
}

RankArgs Comm::placesOf(const Call& call) const {
  return {group_->placeOf(rank_, call.args.in, call.inExtent(group_->ranks())),
          group_->placeOf(rank_, call.args.out, call.outExtent(group_->ranks())),
          group_->placeOf(rank_, call.args.aux, 0)};
}

bool Comm::pulls(const Launch& launch) const {
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    const RankArgs& stated = launch.of(rank);
    if (stated.in.isOrdinary() || stated.out.isOrdinary()) return true;
  }
  return false;
}

Code Comm::pullItems(const Call& call, const Launch& launch, Deadline& deadline) {
  if (pulling_ == nullptr) return failures_.publishNoMemory();
  shownPhases_ = launch.phases;
  isPulling_ = true;
  const Code code = orNoMemory([&] {
    return pulling_->items().run(*call.far, launch, call.firstPhase, deadline, call.error);
  });
  isPulling_ = false;
  return code;
}

bool Comm::reachesOutput(const Launch& launch, uint32_t owner) const {
  return !group_->isFar(rank_, owner, launch.of(owner).out);
}

Code Comm::skipInLine(Code code, uint32_t phases) {
  return orNoMemory([&] {
    for (uint32_t core = 0; core < group_->config().deviceCores; ++core) {
      const InLine own = inLine(core);
      for (uint32_t peer = 0; peer < group_->ranks(); ++peer)
        kKernels.notify(own.line(peer, rank_, core, group_->ranks()), own.word(phases));
    }
    return code;
  });
}

Code Comm::pull(const PullForm& form, const Call& call, const Launch& launch, Deadline& deadline) {
  if (pulling_ == nullptr) return failures_.publishNoMemory();
  // A rank that saw all ranks enter may not have rung the others yet.
  waiter_.ring();
  shownPhases_ = form.phases;
  isPulling_ = true;
  const Code code =
      orNoMemory([&] { return pulling_->run(form, launch, deadline, call.error); });
  isPulling_ = false;
  if (code == WL_OK) allEntered_ = sequence_;
  return code;
}

void Comm::takeSequence(const Call& call) {
  ++sequence_;
  own_.state.sequence.store(sequence(), std::memory_order_relaxed);
  // Operations that only exchange words about host objects count as 0 bytes.
  const uint64_t bytes = call.parts == nullptr ? call.bytes : call.inBytes;
  recorder_.enter(sequence(), call.descriptor, call.workBytes == 0 ? 0 : bytes);
}

Code Comm::failed(Code code, wl_error_t* error) {
  if (isRefusal(code) && group_->failure() == nullptr) return code;
  if (code != WL_CLOSED && !endedByClose_) {
    told_.store(true, std::memory_order_relaxed);
    return told(nullptr, error);
  }
  return fail(error, WL_CLOSED, "rank %u: the communicator was closed while %s was in progress",
              rank_, OperationText(own_.state).text());
}

Code Comm::end(Code code, wl_error_t* error) {
  if (code != WL_OK) code = failed(code, error);
  leaveCall();
  return code;
}

void Comm::leaveCall() {
  own_.state.busy.exchange(0, std::memory_order_seq_cst);
  group_->wakeSleepers();
  if (group_->failure() != nullptr) group_->dropRetired();
}

Code Comm::finish(Code code, bool isLong, wl_error_t* error) {
  if (code != WL_OK) code = failed(code, error);
  recorder_.leave(code, waiter_.waitedNs(), code != WL_OK || waiter_.waitedNs() > 0 || isLong);
  leaveCall();
  return code;
}

int32_t Comm::peerMemory(char* why, size_t room) const {
  if (!group_->config().spansProcesses) {
    std::snprintf(why, room, "all ranks live in one process");
    return WL_PEER_MEMORY_SHARED;
  }
  if (pulling_ != nullptr) return pulling_->access().form(why, room);
  std::snprintf(why, room, "%s", noMemory(rank_).message);
  return WL_PEER_MEMORY_OPEN;
}

Code Comm::told(const char* prefix, wl_error_t* error) const {
  if (group_->leftOut(rank_)) return copyError(error, leftOutOf(*group_, rank_), nullptr);
  return copyError(error, *group_->failure(), prefix);
}

Code Comm::status(wl_error_t* error) const {
  if (closes()) return fail(error, WL_CLOSED, "rank %u: the communicator is closed", rank_);
  return group_->failure() == nullptr ? WL_OK : told("the communicator is dead: ", error);
}

Code Comm::close(wl_error_t* error) {
  State& state = own_.state;
  state.closing.exchange(1, std::memory_order_seq_cst);
  group_->wakeSleepers();
  const int64_t start = clockNs();
  for (uint32_t look = 0; state.busy.load(std::memory_order_seq_cst) != 0; ++look) {
    if (clockNs() - start > kCloseLimitNs) {
      return fail(error, WL_TIMEOUT,
                  "rank %u: a call in flight did not leave within %lld s of close()", rank_,
                  static_cast<long long>(kCloseLimitNs / 1'000'000'000));
    }
    if (look < 64) {
      sched_yield();
    } else {
      usleep(100);
    }
  }
  endEnqueued();
  if (group_->failure() != nullptr) group_->dropRetired();
  if (!group_->leave(rank_)) return WL_OK;
  // If two ranks leave at the same time, the second to be marked sees the mark of the other.
  if (group_->failure() == nullptr) compareLast();
  workers_.reset();
  if (group_->config().offloadCores > 0) group_->offloadSeats().close(rank_);
  return untoldMismatch(error);
}

void Comm::compareLast() {
  if (compared() != WL_OK) return;
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (peer == rank_ || !left(peer)) continue;
    // Ranks are at most one operation apart: each enters an operation after all have entered the
    // previous one.
    if (!group_->entered(peer, sequence_)) {
      failures_.publishUnmatched(rank_, peer, sequence_);
      return;
    }
    if (group_->entered(peer, sequence_ + 1)) {
      failures_.publishUnmatched(peer, rank_, sequence_ + 1);
      return;
    }
  }
}

Code Comm::untoldMismatch(wl_error_t* error) const {
  const wl_error_t* failure = group_->failure();
  if (failure == nullptr || failure->code != WL_MISMATCH) return WL_OK;
  if (told_.load(std::memory_order_relaxed)) return WL_OK;
  return copyError(error, *failure, nullptr);
}

void Comm::fillEntry(const Call& call, bool eager) {
  Entry& entry = own_.entry[sequence_ & 1];
  entry.core.store(own_.state.core.load(std::memory_order_relaxed), std::memory_order_relaxed);
  entry.descriptor = call.descriptor;
  if (group_->config().spansProcesses) {
    entry.args = placesOf(call);
  } else {
    entry.args = {placeInAddressSpace(call.args.in), placeInAddressSpace(call.args.out),
                  placeInAddressSpace(call.args.aux)};
  }
  if (call.parts != nullptr) entry.args.aux = group_->block().placeOf(&stateParts(call));
  if (eager) {
    unsigned char* copy =
        call.inBytes <= kInlineBytes ? entry.inlined : group_->block().eager(rank_, sequence_);
    if (call.inBytes <= kShortCopyBytes) {
      copyShort(copy, call.args.in, call.inBytes);
    } else {
      kTarget.copy(copy, call.args.in, call.inBytes);
    }
    entry.args.in = group_->block().placeOf(copy);
  }
}

const PartTable& Comm::stateParts(const Call& call) {
  const PartLists& lists = *call.parts;
  const uint64_t elementBytes = sizeOf(static_cast<DType>(call.descriptor.dtype()));
  PartTable& table = group_->block().parts(rank_, sequence_);
  table.largest = 0;
  // Fills the parts of the output or of the input, and sets `largest`. The input comes last, so
  // that its largest part counts if both have parts.
  const auto fill = [&](Part& (PartTable::*part)(uint32_t), const int64_t* counts,
                        const int64_t* offsets) {
    uint64_t end = 0;
    uint64_t largest = 0;
    for (uint32_t rank = 0; rank < group_->ranks(); ++rank) {
      const uint64_t bytes = static_cast<uint64_t>(counts[rank]) * elementBytes;
      const uint64_t start =
          offsets == nullptr ? end : static_cast<uint64_t>(offsets[rank]) * elementBytes;
      (table.*part)(rank) = {start, bytes};
      end = start + bytes;
      if (bytes > largest) largest = bytes;
    }
    table.largest = largest;
  };
  if (lists.outCounts != nullptr) fill(&PartTable::out, lists.outCounts, lists.outOffsets);
  if (lists.inCounts != nullptr) fill(&PartTable::in, lists.inCounts, lists.inOffsets);
  table.room = lists.room;
  table.refused = 0;
  return table;
}

Comm::Claim Comm::nextClaim(uint32_t owner, uint32_t phase) const {
  const uint64_t word = group_->lines(owner).work.next.load(std::memory_order_acquire);
  const auto front = static_cast<uint32_t>(word >> 20 & kMostBlocks);
  const auto left = static_cast<uint32_t>(word & kMostBlocks);
  const bool current = word >> 40 == workWord(sequence_, phase, 0) >> 40;
  if (!current || left == 0) return {word, 0, 0};
  return owner == rank_ ? Claim{word, kTakeFront, front} : Claim{word, kTakeBack, front + left - 1};
}

void Comm::offerItems(uint32_t owner, uint32_t phase, uint32_t blocks) {
  Work& work = group_->lines(owner).work;
  work.finished.store(0, std::memory_order_relaxed);
  work.next.store(workWord(sequence_, phase, blocks), std::memory_order_release);
}

void Comm::finishPhase(uint32_t owner, uint32_t phase) {
  group_->lines(owner).done.word.store(phaseWord(sequence_, phase + 1), std::memory_order_release);
}

bool Comm::agree(uint32_t a, uint32_t b, uint64_t sequence) const {
  const Descriptor& stated = group_->lines(a).entry[sequence & 1].descriptor;
  if (!(stated == group_->lines(b).entry[sequence & 1].descriptor)) return false;
  if (!stated.pairsParts()) return true;
  const PartTable& ofA = group_->block().parts(a, sequence);
  const PartTable& ofB = group_->block().parts(b, sequence);
  return ofA.in(b).bytes == ofB.out(a).bytes && ofB.in(a).bytes == ofA.out(b).bytes;
}

bool Comm::allStated(const Descriptor& descriptor) const {
  if (!(own_.entry[sequence_ & 1].descriptor == descriptor)) return false;
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!group_->entered(peer, sequence_) || !agree(rank_, peer, sequence_)) return false;
  }
  return true;
}

Code Comm::compareAll() {
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!agree(rank_, peer, sequence_)) return failures_.publishMismatch(rank_, peer, sequence_);
  }
  for (uint32_t a = 0; current_.pairsParts() && a < group_->ranks(); ++a) {
    for (uint32_t b = a + 1; b < group_->ranks(); ++b) {
      if (!agree(a, b, sequence_)) return failures_.publishMismatch(a, b, sequence_);
    }
  }
  return WL_OK;
}

Code Comm::awaitAllOfPrevious(Deadline& deadline) {
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    const Code code = wait([&] { return group_->entered(peer, sequence_ - 1); }, peer, deadline);
    if (code != WL_OK) return code;
    if (!agree(rank_, peer, sequence_ - 1))
      return failures_.publishMismatch(rank_, peer, sequence_ - 1);
  }
  allEntered_ = sequence_ - 1;
  return WL_OK;
}

Code Comm::awaitEntry(uint32_t peer, Deadline& deadline) {
  const Code code = wait([&] { return group_->entered(peer, sequence_); }, peer, deadline);
  if (code != WL_OK) return code;
  return agree(rank_, peer, sequence_) ? WL_OK : failures_.publishMismatch(rank_, peer, sequence_);
}

Code Comm::awaitNeed(uint32_t need, uint32_t phase, Deadline& deadline) {
  if (need == kNobody) return WL_OK;
  const uint32_t first = need == kEveryRank ? 0 : need;
  const uint32_t last = need == kEveryRank ? group_->ranks() : need + 1;
  for (uint32_t peer = first; peer < last; ++peer) {
    if (peer == rank_) continue;
    const Code code =
        phase == 0 ? awaitEntry(peer, deadline)
                   : wait([&] { return group_->done(peer, sequence_, phase); }, peer, deadline);
    if (code != WL_OK) return code;
  }
  if (need == kEveryRank && phase == 0) allEntered_ = sequence_;
  return WL_OK;
}

}  // namespace windlass
