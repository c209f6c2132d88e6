// SPDX-License-Identifier: Apache-2.0
// Forks in which ranks of a test live, and a group whose ranks do: how they join, and come to watch
// one another.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "tests/native/core/local_ranks.h"

namespace windlass_test {

// Prints of each thread of a process its name, its state, the ticks that it has computed, and the
// system call that it is in, as Linux has them.
inline void showThreads(pid_t process) {
  char command[256];
  std::snprintf(command, sizeof command,
                "for t in /proc/%d/task/*; do echo \"  $(cat $t/comm)"
                " $(sed 's/.*) //' $t/stat | cut -d' ' -f1,12,13), call $(cat $t/syscall)\";"
                " done >&2",
                process);
  [[maybe_unused]] const int status = std::system(command);
}

// Processes that each run a body. They end with the test.
class Forks {
 public:
  Forks(int count, const std::function<int(int process)>& body) {
    seed();                // one for all processes
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
        showThreads(pids_[process]);
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

// A group whose ranks live in forks of this process, among which they are dealt out.
class ForkedGroup {
 public:
  static constexpr int kMostProcesses = 16;

  ForkedGroup(const wl_group_config_t& config, int processes)
      : processes_(processes), ranks_(config.ranks) {
    if (processes > kMostProcesses) std::abort();
    // Make the group in a fork: a process that has opened a GPU's driver cannot fork processes that
    // use one.
    const Shared<Made> made;
    Forks maker(1, [&](int) {
      Error error;
      if (wl_group_share(&config, &made->file, &error) != WL_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
      }
      made->owner = self();
      made->isThere = 1;
      for (;;) pause();
    });
    Error error;
    if (!await([&] { return made->isThere != 0; }) ||
        wl_file_open(&made->owner, made->file, &file_, &error) != WL_OK)
      std::abort();
  }
  ~ForkedGroup() { wl_file_close(file_); }
  ForkedGroup(const ForkedGroup&) = delete;
  ForkedGroup& operator=(const ForkedGroup&) = delete;

  // In any process, and in this one where the test looks on.
  wl_group_t* attach() const {
    wl_group_t* group = nullptr;
    Error error;
    if (wl_group_attach(file_, &group, &error) != WL_OK) std::abort();
    return group;
  }
  std::vector<int32_t> ranksOf(int process) const {
    return windlass_test::ranksOf(process, processes_, ranks_);
  }

  // In process `own`: watches the other processes, once they have arrived.
  void watchOthers(wl_group_t* group, int own, int64_t silenceNs) const {
    roster_->names[own] = self();
    roster_->isThere[own] = 1;
    for (int peer = 0; peer < processes_; ++peer) {
      if (peer == own) continue;
      while (roster_->isThere[peer] == 0) usleep(100);
      watch(group, roster_->names[peer], ranksOf(peer), silenceNs);
    }
  }

 private:
  struct Roster {
    std::atomic<int> isThere[kMostProcesses];
    wl_process_t names[kMostProcesses];
  };

  struct Made {
    std::atomic<int> isThere;
    wl_process_t owner;
    int32_t file;
  };

  const int processes_;
  const int ranks_;
  int32_t file_ = -1;
  const Shared<Roster> roster_;
};

// Ranks that live in this process, with their handles.
class OwnRanks {
 public:
  // Takes the group over.
  OwnRanks(wl_group_t* of, std::vector<int32_t> joining) : group(of), ranks(std::move(joining)) {
    for (const int32_t rank : ranks) {
      Error error;
      comms.push_back(nullptr);
      if (wl_group_join(group, rank, &comms.back(), &error) != WL_OK) std::abort();
    }
  }
  // Those of a fork, which watches the others.
  OwnRanks(const ForkedGroup& all, int process, int64_t silenceNs = 0)
      : OwnRanks(all.attach(), all.ranksOf(process)) {
    all.watchOthers(group, process, silenceNs);
  }
  ~OwnRanks() {
    for (wl_comm_t* comm : comms) wl_comm_free(comm);
    wl_group_release(group);
  }
  OwnRanks(const OwnRanks&) = delete;
  OwnRanks& operator=(const OwnRanks&) = delete;

  // Runs the body on each, in a thread of its own; it may free the handle, and leave null.
  void run(const std::function<void(int rank, wl_comm_t*& comm)>& body) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < comms.size(); ++i)
      threads.emplace_back([&, i] { body(ranks[i], comms[i]); });
    for (std::thread& thread : threads) thread.join();
  }

  wl_group_t* const group;
  const std::vector<int32_t> ranks;
  std::vector<wl_comm_t*> comms;
};

}  // namespace windlass_test
