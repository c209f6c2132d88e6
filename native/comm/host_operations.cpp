// SPDX-License-Identifier: Apache-2.0
#include "native/comm/host_operations.h"

#include <algorithm>
#include <map>
#include <new>
#include <vector>

#include "native/comm/launch.h"

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

struct WindowRequest {
  uint64_t bytes;
  std::shared_ptr<Segments> segments;
  wl_error_t outcome;
};

struct MakeWindow : MadeByRankZero {
  static void phase(const Launch& launch, uint32_t, uint32_t, uint32_t) {
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
  int32_t color;
  int32_t key;
  const GroupConfig* config;
  std::shared_ptr<Group> group;
  uint32_t rank;
  wl_error_t outcome;
};

struct MakeSplit : MadeByRankZero {
  static void make(const Launch& launch) {
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
        SplitRequest& member = auxOf<SplitRequest>(launch, members[i]);
        group->claim(i);
        member.group = group;
        member.rank = i;
      }
    }
  }
  static void phase(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    try {
      make(launch);
    } catch (const std::bad_alloc&) {
      for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
        SplitRequest& request = auxOf<SplitRequest>(launch, rank);
        request.group.reset();
        fail(&request.outcome, WL_RESOURCE, "out of memory while a communicator was split");
      }
    }
  }
};

template <class Request>
std::shared_ptr<Request> makeRequest(wl_error_t* error) {
  try {
    return std::make_shared<Request>();
  } catch (const std::bad_alloc&) {
    fail(error, WL_RESOURCE, "out of memory");
    return nullptr;
  }
}

template <class K, class Request>
Code runRequest(Comm& comm, const Descriptor& descriptor, const std::shared_ptr<Request>& request,
                int64_t deadlineNs, wl_error_t* error) {
  request->outcome.struct_size = sizeof(wl_error_t);
  Call call = {};
  call.descriptor = descriptor;
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (Code code = comm.runHost<K>(call, request); code != WL_OK) return code;
  return request->outcome.code == WL_OK ? WL_OK : copyError(error, request->outcome, nullptr);
}

}  // namespace

Code createSegments(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                    std::shared_ptr<Segments>* segments, wl_error_t* error) {
  const auto request = makeRequest<WindowRequest>(error);
  if (request == nullptr) return WL_RESOURCE;
  request->bytes = bytes;
  const Descriptor descriptor = Descriptor::of(WL_OP_WINDOW, bytes);
  const Code code = runRequest<MakeWindow>(comm, descriptor, request, deadlineNs, error);
  if (code != WL_OK) return code;
  *segments = std::move(request->segments);
  return WL_OK;
}

Code splitGroup(Comm& comm, int32_t color, int32_t key, uint64_t digest, int64_t deadlineNs,
                std::shared_ptr<Group>* group, uint32_t* rank, wl_error_t* error) {
  const auto request = makeRequest<SplitRequest>(error);
  if (request == nullptr) return WL_RESOURCE;
  request->color = color;
  request->key = key;
  request->config = &comm.group().config();
  const Descriptor descriptor = Descriptor::of(WL_OP_SPLIT, digest);
  const Code code = runRequest<MakeSplit>(comm, descriptor, request, deadlineNs, error);
  if (code != WL_OK) return code;
  *group = std::move(request->group);
  *rank = request->rank;
  return WL_OK;
}

}  // namespace windlass
