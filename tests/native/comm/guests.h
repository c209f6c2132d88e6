// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own, forked, which meet by the C ABI alone.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "tests/native/comm/forks.h"

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

inline wl_process_t self() {
  wl_process_t process = {};
  process.struct_size = sizeof process;
  Error error;
  if (wl_process_self(&process, &error) != WL_OK) std::abort();
  return process;
}

// What the parent hands to its children.
class Memory {
 public:
  Memory() {
    const wl_group_config_t config = configOf(kRanks);
    Error error;
    if (wl_group_share(&config, &file_, &error) != WL_OK) std::abort();
  }
  ~Memory() { wl_file_close(file_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Roster& roster() const { return *roster_; }
  wl_group_t* attach() const {
    wl_group_t* group = nullptr;
    Error error;
    if (wl_group_attach(file_, &group, &error) != WL_OK) std::abort();
    return group;
  }

 private:
  int32_t file_ = -1;
  const Shared<Roster> roster_;
};

// One rank in a process of its own, joined, that watches all others, and a window of all.
struct Guest {
  Guest(Memory& shared, int own, int64_t silenceNs) : rank(own), memory(shared) {
    group = memory.attach();
    Error error;
    if (wl_group_join(group, rank, &comm, &error) != WL_OK) std::abort();
    memory.roster().meet(group, rank, kRanks, kRanks, silenceNs);
    const int32_t code = wl_window_create(comm, kSegment, 0, &window, &error);
    // A peer may be killed this early.
    if (code != WL_OK && code != WL_PEER_LOST) std::abort();
  }
  ~Guest() {
    wl_window_free(window);
    wl_comm_free(comm);
    wl_group_release(group);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  uint32_t* segment(int of) const {
    return static_cast<uint32_t*>(wl_window_address(window, of));
  }

  int rank;
  Memory& memory;
  wl_group_t* group = nullptr;
  wl_comm_t* comm = nullptr;
  wl_window_t* window = nullptr;
};

// Runs the body in a process for each rank; what it returns is 0 where it found nothing wrong. The
// results: a signal as minus that.
template <class Body>
std::vector<int> inProcesses(int64_t silenceNs, Body&& body,
                             const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
  Memory memory;
  Forks forks(kRanks, [&](int rank) {
    Guest guest(memory, rank, silenceNs);
    return body(guest);
  });
  if (meanwhile) meanwhile(forks.pids());
  return forks.wait(60'000 * kMs);
}

// 0, or the line of the first check that fails.
#define CHECK_IN_CHILD(condition) \
  if (!(condition)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), 1

}  // namespace windlass_test
