// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own, forked, which start by the C ABI alone.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "tests/native/core/forks.h"

namespace windlass_test {

constexpr uint64_t kSegment = 1 << 20;
constexpr int kRanks = 3;

inline wl_group_config_t configOf(int ranks) {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.first_sequence = 0xffffff00u;
  config.deadline_ns = 20'000 * kMs;
  return config;
}

// One rank in a process of its own, joined, that watches all others, and a window of all.
struct ForkedRank {
  ForkedRank(const ForkedGroup& all, int process, int64_t silenceNs)
      : own(all, process, silenceNs), rank(process), comm(own.comms[0]) {
    Error error;
    const int32_t code = wl_window_create(comm, kSegment, 0, &window, &error);
    // A peer may be killed this early.
    if (code != WL_OK && code != WL_PEER_LOST) std::abort();
  }
  ~ForkedRank() { wl_window_free(window); }
  ForkedRank(const ForkedRank&) = delete;
  ForkedRank& operator=(const ForkedRank&) = delete;

  uint32_t* segment(int of) const {
    return static_cast<uint32_t*>(wl_window_address(window, of));
  }

  OwnRanks own;
  const int rank;
  wl_comm_t* const comm;
  wl_window_t* window = nullptr;
};

// Runs the body in a process for each rank; what it returns is 0 where it found nothing wrong. The
// results: a signal as minus that.
template <class Body>
std::vector<int> inProcesses(int64_t silenceNs, Body&& body,
                             const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
  const ForkedGroup all(configOf(kRanks), kRanks);
  Forks forks(kRanks, [&](int process) {
    ForkedRank forked(all, process, silenceNs);
    return body(forked);
  });
  if (meanwhile) meanwhile(forks.pids());
  return forks.wait(60'000 * kMs);
}

// 0, or the line of the first check that fails.
#define CHECK_IN_CHILD(condition) \
  if (!(condition)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), 1

}  // namespace windlass_test
