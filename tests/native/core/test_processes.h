// SPDX-License-Identifier: Apache-2.0
// The processes of a test: this one and its forks, each of which goes on with the test from there.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "windlass/windlass.h"

namespace windlass_test {

// A value that processes which are forked later share with this one.
template <class T>
class Shared {
 public:
  Shared() {
    void* page =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    value_ = new (page) T();
  }
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

// Name by which other processes know this one.
inline wl_process_t self() {
  wl_process_t process = {};
  process.struct_size = sizeof process;
  wl_error_t error = {};
  error.struct_size = sizeof error;
  if (wl_process_self(&process, &error) != WL_OK) std::abort();
  return process;
}

// The ranks of one of several processes, among which `ranks` are dealt out.
inline std::vector<int32_t> ranksOf(int process, int processes, int ranks) {
  std::vector<int32_t> own;
  for (int32_t rank = process; rank < ranks; rank += processes) own.push_back(rank);
  return own;
}

// Makes this process watch the named process, which holds these ranks.
inline void watch(wl_group_t* group, const wl_process_t& process, const std::vector<int32_t>& ranks,
                  int64_t silenceNs) {
  wl_error_t error = {};
  error.struct_size = sizeof error;
  if (wl_group_watch(group, &process, ranks.data(), static_cast<uint32_t>(ranks.size()), silenceNs,
                     &error) != WL_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    std::abort();
  }
}

// A group of processes with ranks. The others end with this process. Each fails if one of its own
// checks fails, and the first process reports it.
class TestProcesses {
 public:
  static constexpr int kMost = 64;

  explicit TestProcesses(int count) : count_(count) {
    if (count > kMost) std::abort();
    std::fflush(nullptr);  // what is there is printed once
    const pid_t first = getpid();
    for (int process = 1; process < count && process_ == 0; ++process) {
      const pid_t child = fork();
      if (child < 0) std::abort();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first) _exit(kLost);
        process_ = process;
        children_.clear();
      } else {
        children_.push_back(child);
      }
    }
    shared_->names[process_] = self();
    arriveAndWait();
  }

  ~TestProcesses() {
    if (process_ > 0) {
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? kFailed : 0);
    }
    for (const pid_t child : children_) {
      int status = 0;
      const int64_t start = wl_clock_ns();
      while (waitpid(child, &status, WNOHANG) == 0) {
        if (wl_clock_ns() - start > kLimitNs) kill(child, SIGKILL);
        usleep(200);
      }
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "process " << child << " of the ranks ended with status " << status;
    }
  }
  TestProcesses(const TestProcesses&) = delete;
  TestProcesses& operator=(const TestProcesses&) = delete;

  int count() const { return count_; }
  // 0 for the first, whose forks the others are.
  int own() const { return process_; }
  const wl_process_t& name(int process) const { return shared_->names[process]; }

  // Returns once all have called it as often as this one has. An exception of the first process,
  // and the end of another, where one of them ends before.
  void arriveAndWait() {
    const uint32_t turn = shared_->turn.load();
    if (shared_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(count_)) {
      shared_->arrived = 0;
      shared_->turn = turn + 1;
      return;
    }
    const int64_t start = wl_clock_ns();
    for (int looks = 0; shared_->turn.load() == turn; ++looks) {
      usleep(looks < 100 ? 10 : 200);
      if (looks % 64 != 63) continue;
      const bool isOver = aChildHasEnded() || wl_clock_ns() - start > kLimitNs;
      // The last to come may have gone on, and ended, since the look before.
      if (isOver && shared_->turn.load() == turn) giveUp();
    }
  }

 private:
  static constexpr int64_t kLimitNs = int64_t{120} * 1'000'000'000;
  static constexpr int kFailed = 1;
  static constexpr int kLost = 2;

  struct State {
    std::atomic<uint32_t> arrived{0};
    std::atomic<uint32_t> turn{0};
    wl_process_t names[kMost] = {};
  };

  bool aChildHasEnded() const {
    siginfo_t ended = {};
    for (const pid_t child : children_) {
      if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          ended.si_pid != 0)
        return true;
    }
    return false;
  }

  void giveUp() {
    if (process_ > 0) _exit(kLost);
    for (const pid_t child : children_) kill(child, SIGKILL);
    throw std::runtime_error("a process of the ranks ended early, or did not come in time");
  }

  int count_;
  int process_ = 0;
  std::vector<pid_t> children_;
  Shared<State> shared_;
};

}  // namespace windlass_test
