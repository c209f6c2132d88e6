// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/transfer.h"

#include <algorithm>
#include <new>

#include "native/comm/cpu_executor.h"
#include "native/comm/kernels.h"

namespace windlass {
namespace {

// What a rank brings to the registration, as its peers see it.
struct Joining {
  std::shared_ptr<BoundPlan> plan;
  bool whole;          // its bindings could be read; set before the rank enters
  wl_error_t failure;  // of this rank; code WL_OK when its chunks fit
  bool joined;         // set by rank 0, on every rank or none
  // Filled in the last phase, in room reserved before: what this rank takes home.
  std::vector<std::shared_ptr<BoundPlan>> plans;
  wl_error_t outcome;
};

// Phase 0: each rank resolves its chunks against everyone's bindings. Phase 1: rank 0 joins those
// that read the same. Phase 2: each rank makes its items. Phase 3, which allocates nothing: each
// rank takes the first failure, or every rank's plan. A rank without memory for its Joining enters
// with none, and is such a failure.
struct Register {
  static constexpr uint32_t phases(const Launch&) { return 4; }
  static constexpr bool kStaged = false;
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kEveryRank; }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }

  static Joining* of(const Launch& launch, uint32_t rank) {
    return launch.at<Joining>(rank, launch.of(rank).aux);
  }

  static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t k) {
    Joining* own = of(launch, rank);
    if (own == nullptr) return;
    if (k == 3) return conclude(launch, *own);
    try {
      switch (k) {
        case 0:
          return resolve(launch, rank, *own);
        case 1:
          return join(launch, rank);
        default:
          if (own->joined) own->plan->makeItems(&own->failure);
      }
    } catch (const std::bad_alloc&) {
      fail(&own->failure, WL_RESOURCE, "out of memory while chunks were resolved");
    }
  }

 private:
  static bool failed(const Joining* joining) {
    return joining == nullptr || joining->failure.code != WL_OK;
  }

  static void resolve(const Launch& launch, uint32_t rank, Joining& own) {
    std::vector<const BoundPlan*> plans;
    for (uint32_t peer = 0; peer < launch.ranks; ++peer) {
      const Joining* other = of(launch, peer);
      if (other == nullptr || !other->whole) return;
      plans.push_back(other->plan.get());
    }
    own.plan->resolve(rank, plans, &own.failure);
  }

  static void join(const Launch& launch, uint32_t rank) {
    if (rank != 0) return;
    std::vector<BoundPlan*> plans;
    for (uint32_t peer = 0; peer < launch.ranks; ++peer) {
      if (failed(of(launch, peer))) return;
      plans.push_back(of(launch, peer)->plan.get());
    }
    BoundPlan::join(plans);
    for (uint32_t peer = 0; peer < launch.ranks; ++peer) of(launch, peer)->joined = true;
  }

  static void conclude(const Launch& launch, Joining& own) noexcept {
    own.plan->dropBoxes();
    for (uint32_t peer = 0; peer < launch.ranks; ++peer) {
      const Joining* other = of(launch, peer);
      if (failed(other)) {
        char prefix[64];
        std::snprintf(prefix, sizeof prefix, "rank %u's part of the transfer: ", peer);
        copyError(&own.outcome, other == nullptr ? noMemory(peer) : other->failure, prefix);
        own.plans.clear();
        return;
      }
      own.plans.push_back(other->plan);  // in room that was reserved
    }
  }
};

// What this rank brings; nullptr when memory is too short to say even that.
std::shared_ptr<Joining> prepare(const wl_transfer_config_t& config, uint32_t ranks) {
  std::shared_ptr<Joining> joining;
  try {
    joining = std::make_shared<Joining>();
    joining->failure.struct_size = sizeof(wl_error_t);
    joining->outcome.struct_size = sizeof(wl_error_t);
    joining->plan = std::make_shared<BoundPlan>();
    joining->plans.reserve(ranks);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  try {
    joining->whole = joining->plan->read(config, &joining->failure) == WL_OK;
  } catch (const std::bad_alloc&) {
    fail(&joining->failure, WL_RESOURCE, "out of memory for its bindings and chunks");
  }
  return joining;
}

}  // namespace

Code Transfer::create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                      Transfer* out, wl_error_t* error) {
  if (Code code = comm.requireOneProcess("a transfer", error); code != WL_OK) return code;
  const auto joining =
      out == nullptr ? nullptr : prepare(config, comm.group().ranks());
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_REGISTER, config.fingerprint);
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (Code code = comm.runHost<Register>(call, joining); code != WL_OK) return code;
  if (joining == nullptr) {
    char prefix[64];
    std::snprintf(prefix, sizeof prefix, "rank %u's part of the transfer: ", comm.rank());
    return copyError(error, noMemory(comm.rank()), prefix);
  }
  if (joining->outcome.code != WL_OK) return copyError(error, joining->outcome, nullptr);
  out->id_ = comm.sequence();
  out->plans_ = std::move(joining->plans);
  for (const auto& plan : out->plans_) out->phases_ = std::max(out->phases_, plan->phases());
  return WL_OK;
}

Transfer::~Transfer() {
  for (const auto& plan : plans_) group_->retire(plan);
}

Code Transfer::run(uint64_t version, int64_t deadlineNs, wl_error_t* error) {
  BoundPlan& own = *plans_[comm_.rank()];
  own.resetMoved();
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_TRANSFER, version, 0, 0, 0, static_cast<int32_t>(id_));
  call.bytes = own.targetBytes();
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (phases_ > kMostPhases) call.startNs = clockNs();
  for (uint32_t w = 0, left = phases_; left > 0; ++w, left -= call.phases) {
    call.phases = std::min(left, kMostPhases);
    call.args.aux = const_cast<ChunkBlocks*>(&own.blocks(w));
    call.workBytes = 0;
    for (const auto& plan : plans_) call.workBytes += plan->workBytes(w);
    if (Code code = comm_.run(Kernel::kRedistribute, call); code != WL_OK) return code;
  }
  return WL_OK;
}

void Transfer::moved(int32_t rank, uint64_t* moved, uint64_t count) const {
  std::fill(moved, moved + count, 0);
  for (int32_t r = 0; r < ranks(); ++r) {
    if (rank < 0 || rank == r) plans_[static_cast<size_t>(r)]->addMoved(moved, count);
  }
}

const Binding* Transfer::source(int32_t rank, uint64_t index) const {
  return rank >= 0 && rank < ranks() ? plans_[static_cast<size_t>(rank)]->source(index) : nullptr;
}

}  // namespace windlass
