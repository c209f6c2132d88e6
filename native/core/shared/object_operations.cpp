// SPDX-License-Identifier: Apache-2.0
#include "native/core/shared/object_operations.h"

#include <algorithm>

#include "native/core/launch/kernels.h"
#include "native/core/names.h"

namespace windlass {
namespace {

Call hostCall(const HostOperation& of, const OwnArgs& args) {
  Call call = Call::of(of.descriptor, of.limit.deadlineNs, of.error);
  call.args = args;
  call.startNs = of.limit.startNs;
  return call;
}

// The group that this process makes for one color of a split. The first of its ranks that arrives
// makes it.
class Parting {
 public:
  // Reserves room for all ranks of `whole`.
  static std::shared_ptr<Parting> reserve(const GroupConfig& whole) {
    auto part = std::make_shared<Parting>();
    part->group_ = Group::reserve(whole);
    part->members_.reserve(whole.ranks);
    part->rankOf_.resize(whole.ranks, kNobody);
    part->failed_.resize(whole.ranks, false);
    return part;
  }

  // Returns the group, and sets *as to the calling rank's number in it. Call after all ranks'
  // colors and keys are known.
  std::shared_ptr<Group> take(const std::vector<ToldSplit>& all, const Split& split,
                              const Comm& comm, uint32_t* as) {
    const uint32_t rank = comm.rank();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!settled_) settle(all, split, comm.group());
    *as = rankOf_[rank];
    return group_;
  }

  // A rank whose call failed leaves the group, which others may already have or will get.
  void fail(uint32_t rank, const Split& split, const wl_error_t& why) {
    std::lock_guard<std::mutex> lock(mutex_);
    failed_[rank] = true;
    if (settled_ && rankOf_[rank] != kNobody)
      leaveSplit(*group_, rankOf_[rank], split.operation, why);
  }

 private:
  void settle(const std::vector<ToldSplit>& all, const Split& split, const Group& whole) {
    findMembers(all, split.color, &members_);
    const auto members = static_cast<uint32_t>(members_.size());
    group_->settle(members);
    group_->comeFrom(whole, members_);
    settled_ = true;
    for (uint32_t as = 0; as < members; ++as) {
      rankOf_[members_[as]] = as;
      group_->claim(as, nullptr);
      if (failed_[members_[as]]) leaveSplit(*group_, as, split.operation, *whole.failure());
    }
  }

  std::mutex mutex_;
  bool settled_ = false;
  std::shared_ptr<Group> group_;
  std::vector<uint32_t> members_;  // the group's members, numbered as in the whole
  std::vector<uint32_t> rankOf_;   // number in the group of each rank of the whole, or kNobody
  std::vector<bool> failed_;
};

}  // namespace

Code gatherWords(const HostOperation& of, const void* own, uint64_t bytes, void* all) {
  Call call = hostCall(of, {own, all, nullptr});
  call.bytes = call.inBytes = bytes;
  call.outBytes = bytes * of.comm.group().ranks();
  return of.comm.run(kKernels.collectives[WL_OP_ALL_GATHER].eager, call);
}

Code exchangeWords(const HostOperation& of, const void* own, uint64_t bytes, void* all) {
  Call call = hostCall(of, {own, all, nullptr});
  call.bytes = bytes;
  call.inBytes = call.outBytes = bytes * of.comm.group().ranks();
  return of.comm.run(kKernels.collectives[WL_OP_ALL_TO_ALL].eager, call);
}

Code reduceWord(const HostOperation& of, wl_reduce_op op, uint32_t* word) {
  const uint32_t own = *word;
  Call call = hostCall(of, {&own, word, nullptr});
  call.descriptor = Descriptor::of(of.descriptor.operation(), of.descriptor.count, WL_U32, op, 0,
                                   of.descriptor.number());
  call.bytes = call.inBytes = call.outBytes = sizeof own;
  return of.comm.run(kKernels.collectives[WL_OP_ALL_REDUCE].eager, call);
}

// Each rank that failed states its number. The minimum is the first rank that failed, and all ranks
// get its error.
Code shareOutcome(const HostOperation& of, const wl_error_t& own) {
  uint32_t failed = own.code == WL_OK ? kNobody : of.comm.rank();
  Code code = reduceWord(of, WL_MIN, &failed);
  if (code != WL_OK || failed == kNobody) return code;
  static_assert(sizeof(wl_error_t) <= kGatheredBytes, "an error rides with ENTER");
  wl_error_t told = own;
  const bool isRoot = of.comm.rank() == failed;
  Call call = hostCall(of, {isRoot ? &own : nullptr, isRoot ? nullptr : &told, nullptr});
  call.descriptor = Descriptor::numbered(of.descriptor.operation(), of.descriptor.count, failed);
  call.bytes = call.outBytes = sizeof told;
  call.inBytes = isRoot ? sizeof own : 0;
  code = of.comm.run(kKernels.collectives[WL_OP_BROADCAST].eager, call);
  return code == WL_OK ? copyError(of.error, told, nullptr) : code;
}

Code shareDeviceOutcome(const HostOperation& of, const wl_error_t& own) {
  Comm& comm = of.comm;
  const bool lived = comm.group().failure() == nullptr;
  wl_error_t told = blankError();
  const Code code = shareOutcome({comm, of.descriptor, of.limit, &told}, own);
  if (code == WL_OK) return code;
  if (code == WL_DEVICE && comm.group().failure() == nullptr) comm.gate().blame(told, nullptr);
  // The rank that knew the error first may have ended the communicator before this rank got the
  // result.
  const wl_error_t* const failure = comm.group().failure();
  const bool isOfThis = lived && failure != nullptr && failure->code == code;
  return copyError(of.error, isOfThis ? *failure : told, nullptr);
}

Code createWindow(Comm& comm, const NewWindow& asked, int64_t deadlineNs,
                  std::shared_ptr<Window>* window, wl_error_t* error) {
  const HostOperation of = {comm, asked.descriptor(), TimeLimit::fromNow(deadlineNs), error};
  if (comm.group().config().spansProcesses) return createSharedWindow(of, asked, window);
  const uint32_t ranks = comm.group().ranks();
  wl_error_t failure = blankError();
  Joint<Window> made;
  attempt(comm.rank(), &failure, [&] {
    if (window == nullptr) throw std::bad_alloc();
    const auto create = [&] {
      Window* mapped = nullptr;
      const auto map = asked.isSparse() ? Window::mapSparse : Window::map;
      map(asked.bytes, ranks, &mapped, &failure);
      return std::shared_ptr<Window>(mapped);
    };
    const uint32_t sequence = comm.operation().nextSequence();
    made = comm.group().joint().make<Window>(sequence, JointObjects::kWindow, create);
  });
  const Code code = shareOutcome(of, failure);
  if (code == WL_OK) *window = *made;
  return code;
}

void leaveSplit(Group& group, uint32_t rank, wl_operation operation, const wl_error_t& why) {
  wl_error_t record =
      errorOf(WL_ABORTED, "rank %u of this communicator never joined it, since its %s failed: %s",
              rank, operationName(operation), why.message);
  record.operation = operation;
  record.observer = static_cast<int32_t>(rank);
  nameFaultyRank(&record, rank);
  group.publishFailure(record);
  // Set after the record: otherwise a peer that sees a rank gone without a record writes its own.
  group.lines(rank).state.closing.store(1, std::memory_order_seq_cst);
  group.leave(rank);
}

void findMembers(const std::vector<ToldSplit>& all, int32_t color,
                 std::vector<uint32_t>* members) {
  members->clear();
  for (uint32_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].color == color) members->push_back(rank);
  std::sort(members->begin(), members->end(), [&](uint32_t a, uint32_t b) {
    return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
  });
}

Code splitGroup(Comm& comm, const Split& split, int64_t deadlineNs, std::shared_ptr<Group>* group,
                uint32_t* rank, wl_error_t* error) {
  const HostOperation of = {comm, split.descriptor(), TimeLimit::fromNow(deadlineNs), error};
  if (comm.group().config().spansProcesses) return splitSharedGroup(of, split, group, rank);
  wl_error_t failure = blankError();
  Joint<Parting> joint;
  std::vector<ToldSplit> all;
  attempt(comm.rank(), &failure, [&] {
    all.resize(comm.group().ranks());
    if (split.color < 0) return;
    joint = comm.group().joint().make<Parting>(
        comm.operation().nextSequence(), split.color,
        [&] { return Parting::reserve(comm.group().config()); });
  });
  const ToldSplit own = {split.color, split.key};
  Code code = shareOutcome(of, failure);
  if (code == WL_OK) code = gatherWords(of, &own, sizeof own, all.data());
  if (joint == nullptr) return code;
  Parting& parting = **joint;
  if (code == WL_OK) {
    *group = parting.take(all, split, comm, rank);
  } else if (const wl_error_t* record = comm.group().failure()) {
    parting.fail(comm.rank(), split, *record);
  }
  return code;
}

}  // namespace windlass
