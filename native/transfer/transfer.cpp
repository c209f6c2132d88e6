// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/transfer.h"

#include <algorithm>

#include "native/base/text.h"
#include "native/core/launch/kernels.h"
#include "native/core/shared/object_operations.h"
#include "native/device/device_wait.h"

namespace windlass {
namespace {

// Bits of entering_: the low 32 bits hold a sequence, then this flag, then the number of moves.
constexpr uint64_t kEntering = uint64_t{1} << 32;
constexpr uint32_t kMovesShift = 33;

// Returns a mismatch error with two faulty ranks, unless the operation failed before with `code`.
template <class... Values>
Code disagree(Code code, wl_error_t* error, uint32_t a, uint32_t b, const char* format,
              Values... values) {
  if (code != WL_OK) return code;
  wl_error_t told = errorOf(WL_MISMATCH, format, values...);
  told.faulty_rank_count = 2;
  told.faulty_ranks[0] = static_cast<int32_t>(a);
  told.faulty_ranks[1] = static_cast<int32_t>(b);
  return copyError(error, told, nullptr);
}

}  // namespace

Transfer::~Transfer() {
  if (plan_ != nullptr) group_->retire(plan_);
}

Code Transfer::run(uint64_t version, int64_t deadlineNs, wl_error_t* error) {
  const auto descriptor = Descriptor::numbered(WL_OP_TRANSFER, version, id_);
  Call call = Call::of(descriptor, deadlineNs, error);
  const Named own = {0, 0};
  const Code code = enter(&call, own);
  return code == WL_OK ? goOn(&call) : code;
}

// Runs the first operation of a run.
Code Transfer::enter(Call* call, const Named& own) {
  // A refused run keeps the progress of the last run, or of the one in progress.
  if (comm_.gate().accepts()) plan_->progress->reset();
  call->bytes = targetBytes_;
  call->args.in = &own;
  call->inBytes = sizeof own;
  if (phases_ > kMostPhases) call->startNs = clockNs();
  return runOperation(call, 0);
}

// Runs the remaining operations, for phases beyond kMostPhases.
Code Transfer::goOn(Call* call) {
  for (uint32_t n = 1; n < workBytes_.size(); ++n) {
    if (Code code = runOperation(call, n)) return code;
  }
  return WL_OK;
}

Code Transfer::runOperation(Call* call, uint32_t n) {
  call->phases = std::min(phases_ - n * kMostPhases, kMostPhases);
  call->args.aux = plan_->table.ofOperation(n);
  call->workBytes = workBytes_[n];
  call->far = plan_->far.get();
  call->offloaded = plan_->offloaded.empty() ? nullptr : &plan_->offloaded[n];
  call->firstPhase = n * kMostPhases;
  return comm_.run(kKernels.redistribute, *call);
}

Code Transfer::move(uint64_t number, int64_t* version, int64_t deadlineNs, wl_error_t* error) {
  const Named own = {number, *version};
  *version = Named::kAny;
  Call call = Call::of(Descriptor::of(WL_OP_LINK_MOVE, 0), deadlineNs, error);
  const uint32_t sequence = comm_.operation().nextSequence();
  entering_.store(moves_.load(std::memory_order_relaxed) << kMovesShift | kEntering | sequence,
                  std::memory_order_seq_cst);
  Code code = enter(&call, own);
  // If all ranks refuse the operation, nothing has moved.
  const bool isRefused = code == WL_UNSUPPORTED && group_->failure() == nullptr;
  const bool isStated = !isRefused && comm_.operation().nextSequence() != sequence &&
                        comm_.operation().allStated(call.descriptor);
  if (isStated) code = conclude(code, own, version, deadlineNs, error);
  if (code == WL_OK && *version != Named::kFinished) code = goOn(&call);
  if (isStated) moves_.fetch_add(1, std::memory_order_seq_cst);
  entering_.store(0, std::memory_order_seq_cst);
  return code;
}

Code Transfer::haveDevice(const std::function<Code(RankDevice&, wl_error_t*)>& body,
                          wl_error_t* error) {
  wl_error_t own = blankError();
  DeviceWait waits(*group_, comm_.rank());
  group_->offloadSeats().offload(comm_.rank()).alone(body, waits, &own);
  if (own.code == WL_OK) return WL_OK;
  if (own.code != WL_DEVICE) return copyError(error, own, nullptr);
  const Code code = comm_.failures().publishDevice(own);
  return comm_.gate().failed(code, comm_.waits().endedByClose(), error);
}

uint64_t Transfer::begun() const {
  const uint64_t entering = entering_.load(std::memory_order_seq_cst);
  const uint64_t moves = moves_.load(std::memory_order_seq_cst);
  // moves_ may already include the entering move.
  bool isStated = entering != 0 && moves << kMovesShift == entering >> kMovesShift << kMovesShift;
  for (uint32_t rank = 0; isStated && rank < group_->ranks(); ++rank)
    isStated = group_->entered(rank, static_cast<uint32_t>(entering));
  return moves + (isStated ? 1 : 0);
}

const Named& Transfer::named(uint32_t rank) const {
  const Place place = comm_.operation().stated(rank).in;
  return *static_cast<const Named*>(addressOf(static_cast<int32_t>(rank), place));
}

// Compares the versions and numbers of all ranks. Call it after the first operation of a move has
// ended with `code` and all ranks have stated theirs.
Code Transfer::conclude(Code code, const Named& own, int64_t* version, int64_t deadlineNs,
                        wl_error_t* error) {
  for (uint32_t rank = 0; rank < group_->ranks(); ++rank) {
    if (named(rank).version != Named::kFinished) continue;
    *version = Named::kFinished;
    return WL_OK;  // even if the rank has left since
  }
  uint32_t first = kNobody;  // first rank that names a version
  uint32_t absent = kNobody;
  for (uint32_t rank = 0; rank < group_->ranks(); ++rank) {
    const Named& other = named(rank);
    if (other.transfer != named(0).transfer) {
      return disagree(code, error, 0, rank,
                      "rank 0 is at transfer %llu of those that were registered, rank %u at "
                      "transfer %llu",
                      text(named(0).transfer), rank, text(other.transfer));
    }
    if (other.version == Named::kNone && absent == kNobody) absent = rank;
    if (other.version < 0) continue;
    if (first == kNobody) first = rank;
    if (other.version != named(first).version) {
      return disagree(code, error, first, rank,
                      "rank %u names version %lld, rank %u version %lld; nothing has moved", first,
                      text(named(first).version), rank, text(other.version));
    }
  }
  if (first != kNobody) *version = named(first).version;
  if (code != WL_OK) return code;
  if (first == kNobody && absent == kNobody)
    return fail(error, WL_INVALID_ARGUMENT, "no rank names a version; nothing has moved");
  if (absent == kNobody) return WL_OK;
  if (own.version == Named::kNone)
    return fail(error, WL_INVALID_ARGUMENT, "rank %u takes no part; nothing has moved", absent);
  // The absent rank ends the communicator and states the reason.
  const TimeLimit limit = TimeLimit::fromNow(deadlineNs);
  code = shareOutcome({comm_, Descriptor::of(WL_OP_LINK_MOVE, 0), limit, error}, {});
  if (code != WL_OK) return code;
  return fail(error, WL_ABORTED, "rank %u takes no part; nothing has moved", absent);
}

void Transfer::moved(int32_t rank, uint64_t* moved, uint64_t count) const {
  std::fill(moved, moved + count, 0);
  for (int32_t r = 0; r < ranks(); ++r) {
    if ((rank < 0 || rank == r) && seesProgress(r))
      peers_->progress(static_cast<uint32_t>(r))->addMoved(moved, count);
  }
}

void* Transfer::addressOf(int32_t rank, Place place) const {
  const auto of = static_cast<uint32_t>(rank);
  if (place.isOrdinary() && !group_->liveTogether(comm_.rank(), of)) return nullptr;
  return group_->at(of, place);
}

}  // namespace windlass
