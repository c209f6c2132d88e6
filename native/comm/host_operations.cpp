// SPDX-License-Identifier: Apache-2.0
#include "native/comm/host_operations.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <vector>

#include "native/comm/cpu_executor.h"

namespace windlass {
namespace {

// Rank 0's one item makes the object and hands it to every rank through its aux.
struct MadeByRankZero {
  static constexpr uint32_t phases(const Launch&) { return 1; }
  static constexpr bool kStaged = false;
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch&, uint32_t rank) { return rank == 0 ? 1 : 0; }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kEveryRank; }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

template <class T>
T& auxOf(const Launch& launch, uint32_t rank) {
  return *static_cast<T*>(launch.of(rank).aux);
}

// A rank that found no memory for its request enters without one; kNobody when all have theirs.
uint32_t withoutRequest(const Launch& launch) {
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    if (launch.of(rank).aux == nullptr) return rank;
  }
  return kNobody;
}

// Tells every rank that has a request.
template <class Request>
void failAll(const Launch& launch, const wl_error_t& outcome) {
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    if (launch.of(rank).aux != nullptr) auxOf<Request>(launch, rank).outcome = outcome;
  }
}

struct WindowRequest {
  uint64_t bytes;
  std::shared_ptr<Segments> segments;
  wl_error_t outcome;
};

struct MakeWindow : MadeByRankZero {
  static void phase(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    if (const uint32_t rank = withoutRequest(launch); rank != kNobody)
      return failAll<WindowRequest>(launch, noMemory(rank));
    WindowRequest& first = auxOf<WindowRequest>(launch, 0);
    Segments* segments = nullptr;
    Segments::map(first.bytes, launch.ranks, &segments, &first.outcome);
    try {
      first.segments.reset(segments);
    } catch (const std::bad_alloc&) {
      fail(&first.outcome, WL_RESOURCE, "out of memory");
    }
    for (uint32_t rank = 1; rank < launch.ranks; ++rank) {
      WindowRequest& other = auxOf<WindowRequest>(launch, rank);
      other.segments = first.segments;
      other.outcome = first.outcome;
    }
  }
};

struct SplitRequest {
  enum : uint32_t { kAwaited, kGiven, kFailed };

  wl_operation operation;
  int32_t color;
  int32_t key;
  const GroupConfig* config;
  std::shared_ptr<Group> group;
  uint32_t rank;
  wl_error_t outcome;
  // kGiven once group and rank are set, kFailed once the rank's call has failed for the reason in
  // `failure`: whoever comes second takes the rank out of the group.
  std::atomic<uint32_t> state{kAwaited};
  wl_error_t failure;

  void give(const std::shared_ptr<Group>& made, uint32_t as) {
    group = made;
    rank = as;
    if (state.exchange(kGiven, std::memory_order_acq_rel) == kFailed) {
      leaveSplit(*group, rank, operation, failure);
    }
  }
  void fail(const wl_error_t& why) {
    failure = why;
    if (state.exchange(kFailed, std::memory_order_acq_rel) == kGiven && group != nullptr) {
      leaveSplit(*group, rank, operation, failure);
    }
  }
};

struct MakeSplit : MadeByRankZero {
  struct Member {
    SplitRequest* request;
    std::shared_ptr<Group> group;
    uint32_t rank;
  };

  static std::vector<Member> make(const Launch& launch) {
    std::vector<Member> all;
    std::map<int32_t, std::vector<uint32_t>> colors;
    for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
      const int32_t color = auxOf<SplitRequest>(launch, rank).color;
      if (color >= 0) colors[color].push_back(rank);
    }
    for (auto& [color, members] : colors) {
      std::stable_sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
        return auxOf<SplitRequest>(launch, a).key < auxOf<SplitRequest>(launch, b).key;
      });
      GroupConfig config = *auxOf<SplitRequest>(launch, 0).config;
      config.ranks = static_cast<uint32_t>(members.size());
      const std::shared_ptr<Group> group = Group::create(config);
      if (group == nullptr) throw std::bad_alloc();
      for (uint32_t i = 0; i < members.size(); ++i) {
        group->claim(i);
        all.push_back({&auxOf<SplitRequest>(launch, members[i]), group, i});
      }
    }
    return all;
  }
  static void phase(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    if (const uint32_t rank = withoutRequest(launch); rank != kNobody)
      return failAll<SplitRequest>(launch, noMemory(rank));
    try {
      for (const Member& member : make(launch)) member.request->give(member.group, member.rank);
    } catch (const std::bad_alloc&) {
      for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
        fail(&auxOf<SplitRequest>(launch, rank).outcome, WL_RESOURCE,
             "out of memory while a communicator was split");
      }
    }
  }
};

// nullptr without memory.
template <class Request>
std::shared_ptr<Request> makeRequest() {
  try {
    const auto request = std::make_shared<Request>();
    request->outcome.struct_size = sizeof(wl_error_t);
    return request;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

template <class K, class Request>
Code runRequest(Comm& comm, const Descriptor& descriptor, const std::shared_ptr<Request>& request,
                int64_t deadlineNs, wl_error_t* error) {
  Call call = {};
  call.descriptor = descriptor;
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (Code code = comm.runHost<K>(call, request); code != WL_OK) return code;
  if (request == nullptr) return copyError(error, noMemory(comm.rank()), nullptr);
  return request->outcome.code == WL_OK ? WL_OK : copyError(error, request->outcome, nullptr);
}

}  // namespace

Code createSegments(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                    std::shared_ptr<Segments>* segments, wl_error_t* error) {
  const auto request = segments == nullptr ? nullptr : makeRequest<WindowRequest>();
  if (request != nullptr) request->bytes = bytes;
  const Descriptor descriptor = Descriptor::of(WL_OP_WINDOW, bytes);
  const Code code = runRequest<MakeWindow>(comm, descriptor, request, deadlineNs, error);
  if (code != WL_OK) return code;
  *segments = std::move(request->segments);
  return WL_OK;
}

void leaveSplit(Group& group, uint32_t rank, wl_operation operation, const wl_error_t& why) {
  wl_error_t record =
      errorOf(WL_ABORTED, "rank %u of this communicator never joined it, since its %s failed: %s",
              rank, operationName(operation), why.message);
  record.operation = operation;
  record.observer = static_cast<int32_t>(rank);
  record.culprit_count = 1;
  record.culprits[0] = static_cast<int32_t>(rank);
  group.publishFailure(record);
  // Behind the record: a peer that sees a rank gone without one would write its own.
  group.lines(rank).state.closing.store(1, std::memory_order_seq_cst);
  group.leave(rank);
}

Code splitGroup(Comm& comm, const Split& split, int64_t deadlineNs, std::shared_ptr<Group>* group,
                uint32_t* rank, wl_error_t* error) {
  const auto request = makeRequest<SplitRequest>();
  if (request != nullptr) {
    request->operation = split.operation;
    request->color = split.color;
    request->key = split.key;
    request->config = &comm.group().config();
  }
  const Descriptor descriptor = Descriptor::of(split.operation, split.digest, 0, 0, 0,
                                               static_cast<int32_t>(split.listed));
  const Code code = runRequest<MakeSplit>(comm, descriptor, request, deadlineNs, error);
  if (code != WL_OK) {
    // The rank that makes the groups may have given this one its own, or do so still.
    const wl_error_t* failure = comm.group().failure();
    if (request != nullptr && failure != nullptr) request->fail(*failure);
    return code;
  }
  *group = std::move(request->group);
  *rank = request->rank;
  return WL_OK;
}

}  // namespace windlass
