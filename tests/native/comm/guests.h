// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own, forked, which meet by the C ABI alone.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/native/comm/local_ranks.h"

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

// Where each process tells of itself.
struct Meeting {
  std::atomic<int> ready[kRanks];
  wl_process_t processes[kRanks];
};

// What the parent hands to its children.
class Memory {
 public:
  Memory() {
    const wl_group_config_t config = configOf(kRanks);
    Error error;
    if (wl_group_share(&config, &file_, &error) != WL_OK) std::abort();
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    meeting_ = static_cast<Meeting*>(page);
  }
  ~Memory() {
    munmap(meeting_, 4096);
    wl_file_close(file_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Meeting& meeting() const { return *meeting_; }
  wl_group_t* attach() const {
    wl_group_t* group = nullptr;
    Error error;
    if (wl_group_attach(file_, &group, &error) != WL_OK) std::abort();
    return group;
  }

 private:
  int32_t file_ = -1;
  Meeting* meeting_;
};

// One rank in a process of its own, joined, that watches all others, and a window of all.
struct Guest {
  Guest(Memory& shared, int own, int64_t silenceNs) : rank(own), memory(shared) {
    Meeting& meeting = memory.meeting();
    meeting.processes[rank] = self();
    meeting.ready[rank] = 1;
    group = memory.attach();
    Error error;
    if (wl_group_join(group, rank, &comm, &error) != WL_OK) std::abort();
    for (int32_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      while (meeting.ready[peer] == 0) usleep(100);
      const wl_process_t& process = meeting.processes[peer];
      if (wl_group_watch(group, &process, &peer, 1, silenceNs, &error) != WL_OK) std::abort();
    }
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
// results: a signal as -1.
template <class Body>
std::vector<int> inProcesses(int64_t silenceNs, Body&& body,
                             const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
  Memory memory;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      int result = 0;
      {
        Guest guest(memory, rank, silenceNs);
        result = body(guest);
      }
      _exit(result);
    }
    children.push_back(child);
  }
  if (meanwhile) meanwhile(children);
  std::vector<int> results;
  for (const pid_t child : children) {
    int status = 0;
    const int64_t start = wl_clock_ns();
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (wl_clock_ns() - start > 60'000 * kMs) kill(child, SIGKILL);
      usleep(1000);
    }
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return results;
}

// 0, or the line of the first check that fails.
#define CHECK_IN_CHILD(condition) \
  if (!(condition)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), 1

}  // namespace windlass_test
