// SPDX-License-Identifier: Apache-2.0
// Forks in which ranks of a test live, and how those of one group come to watch one another.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/native/comm/local_ranks.h"

namespace windlass_test {

// Processes that each run a body. They end with the test.
class Forks {
 public:
  Forks(int count, const std::function<int(int process)>& body) {
    std::fflush(nullptr);  // what is there is printed once
    const pid_t first = getpid();
    for (int process = 0; process < count; ++process) {
      const pid_t child = fork();
      if (child < 0) std::abort();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first) _exit(kMostResult);
        const int result = body(process);
        std::fflush(nullptr);
        _exit(std::min(result, kMostResult));
      }
      pids_.push_back(child);
    }
  }
  ~Forks() {
    for (const pid_t child : pids_) kill(child, SIGKILL);
    for (const pid_t child : pids_) waitpid(child, nullptr, 0);
  }
  Forks(const Forks&) = delete;
  Forks& operator=(const Forks&) = delete;

  const std::vector<pid_t>& pids() const { return pids_; }

  // How each ended: what its body returned, kMostResult at most, or minus the signal. Those that
  // last too long are killed.
  std::vector<int> wait(int64_t limitNs = 240'000 * kMs) {
    std::vector<int> ends;
    const int64_t start = wl_clock_ns();
    for (size_t process = 0; process < pids_.size(); ++process) {
      int status = 0;
      for (bool isLate = false; waitpid(pids_[process], &status, WNOHANG) == 0; usleep(200)) {
        if (isLate || wl_clock_ns() - start < limitNs) continue;
        isLate = true;
        ++late_;
        std::fprintf(stderr, "process %zu did not end\n", process);
        kill(pids_[process], SIGKILL);
      }
      ends.push_back(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    }
    pids_.clear();
    return ends;
  }
  // How many those were.
  int late() const { return late_; }

 private:
  static constexpr int kMostResult = 100;

  std::vector<pid_t> pids_;
  int late_ = 0;
};

// Waits until a child has ended, and leaves it to be asked after; false where that lasts too long.
inline bool awaitEnd(pid_t child, int64_t limitNs = 60'000 * kMs) {
  const int64_t start = wl_clock_ns();
  siginfo_t ended = {};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0) {
    if (wl_clock_ns() - start > limitNs) return false;
    usleep(500);
  }
  return ended.si_pid == child;
}

// What they share: who they are. Process p has the ranks p, p + processes, and so on.
struct Roster {
  static constexpr int kMost = 16;

  std::atomic<int> isThere[kMost];
  wl_process_t processes[kMost];

  // Says who this process is, and has it watch the others, once they have said so.
  void meet(wl_group_t* group, int own, int count, int ranks, int64_t silenceNs) {
    Error error;
    processes[own].struct_size = sizeof(wl_process_t);
    if (wl_process_self(&processes[own], &error) != WL_OK) std::abort();
    isThere[own] = 1;
    for (int peer = 0; peer < count; ++peer) {
      if (peer == own) continue;
      while (isThere[peer] == 0) usleep(100);
      std::vector<int32_t> theirs;
      for (int rank = peer; rank < ranks; rank += count) theirs.push_back(rank);
      if (wl_group_watch(group, &processes[peer], theirs.data(),
                         static_cast<uint32_t>(theirs.size()), silenceNs, &error) != WL_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        std::abort();
      }
    }
  }
};

}  // namespace windlass_test
