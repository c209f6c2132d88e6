// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, as processes, or as both: forked processes of some ranks each, which start by
// the C ABI and may be killed and stopped.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "tests/native/core/forks.h"
#include "tests/native/core/held.h"

namespace windlass_test {

constexpr int kMostCrew = 16;

struct Crew {
  int processes;
  int threads;  // ranks of each process

  int ranks() const { return processes * threads; }
  // A process has the ranks that are equal modulo the number of processes.
  int processOf(int rank) const { return rank % processes; }
};

inline void PrintTo(const Crew& crew, std::ostream* out) {
  *out << crew.processes << " processes of " << crew.threads << " ranks";
}

// Those that this build can run: ThreadSanitizer does not see how another process orders what
// threads of this one do.
inline std::vector<Crew> crews(std::vector<Crew> all) {
#if defined(__SANITIZE_THREAD__)
  const auto unseen = [](const Crew& crew) { return crew.processes > 1 && crew.threads > 1; };
  all.erase(std::remove_if(all.begin(), all.end(), unseen), all.end());
#endif
  return all;
}

// Memory that all processes of a crew and the test share.
struct Board {
  std::atomic<int> at[kMostCrew];  // of each rank: how far it is, as its test counts
  std::atomic<int64_t> struckNs;   // when the test killed or stopped a process
  std::atomic<int64_t> sawNs[kMostCrew];  // when each rank got its error
  std::atomic<int64_t> shrunkNs[kMostCrew];
  std::atomic<int> wrong;

  // Waits until all ranks that are not of process `except` are at `least`.
  bool awaitAll(const Crew& crew, int least, int except = -1) const {
    return await([&] {
      for (int rank = 0; rank < crew.ranks(); ++rank)
        if (crew.processOf(rank) != except && at[rank] < least) return false;
      return true;
    });
  }
};

// One rank, in its own thread.
struct Mate {
  int rank;
  bool isFirst;  // of its process
  wl_comm_t* comm;
  Board& board;
};

#define EXPECT_OF_MATE(mate, condition)                                               \
  do {                                                                                \
    if (!(condition)) {                                                               \
      ++(mate).board.wrong;                                                           \
      std::fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, (mate).rank, #condition); \
    }                                                                                 \
  } while (false)

class Muster {
 public:
  explicit Muster(const Crew& crew, int64_t deadlineNs = 20'000 * kMs, int cores = 0,
                  int64_t silenceNs = 0)
      : crew_(crew), silenceNs_(silenceNs) {
    config_.struct_size = sizeof config_;
    config_.ranks = crew.ranks();
    config_.first_sequence = 0xffffff00u;
    config_.deadline_ns = deadlineNs;
    config_.cores = cores;
    config_.device_cores = deviceCores();
    if (crew.processes > 1) all_.emplace(config_, crew.processes);
  }
  Muster(const Muster&) = delete;
  Muster& operator=(const Muster&) = delete;

  Board& board() { return *board_; }
  pid_t pid(int process) const { return forks_->pids()[static_cast<size_t>(process)]; }
  // The test's own view of the control block.
  wl_group_t* attach() const { return all_->attach(); }

  // Runs the body on every rank, and `meanwhile` at the same time. One process: the ranks are
  // threads of this process.
  void run(const std::function<void(Mate&)>& body, const std::function<void()>& meanwhile = {}) {
    if (crew_.processes == 1) {
      wl_group_t* group = nullptr;
      Error error;
      if (wl_group_create(&config_, &group, &error) != WL_OK) std::abort();
      std::thread beside([&] {
        if (meanwhile) meanwhile();
      });
      run(OwnRanks(group, ranksOf(0, 1, crew_.ranks())), body);
      beside.join();
      return;
    }
    forks_.emplace(crew_.processes, [&](int process) {
      run(OwnRanks(*all_, process, silenceNs_), body);
      return 0;
    });
    if (meanwhile) meanwhile();
    ends = forks_->wait(120'000 * kMs);
    board_->wrong += forks_->late();
  }

  // How each process ended: 0, or minus the signal.
  std::vector<int> ends;

 private:
  void run(OwnRanks&& own, const std::function<void(Mate&)>& body) {
    own.run([&](int rank, wl_comm_t* comm) {
      Mate mate = {rank, rank == own.ranks[0], comm, *board_};
      body(mate);
    });
  }

  const Crew crew_;
  const int64_t silenceNs_;
  const Shared<Board> board_;
  wl_group_config_t config_ = {};
  std::optional<ForkedGroup> all_;
  std::optional<Forks> forks_;  // the first to go
};

// Element `i` of the input of `rank` in round `round`.
inline uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

// Runs all-gathers of `count` elements a rank in a window of the communicator, and checks each
// rank's elements. `former` holds the ranks' former numbers. Returns 0, or the code that was not
// WL_OK.
inline int32_t checkedGathers(const Mate& mate, wl_comm_t* comm, const std::vector<int>& former,
                              uint64_t count, uint32_t rounds, Error* error) {
  const int size = wl_comm_size(comm);
  const int rank = wl_comm_rank(comm);
  if (static_cast<size_t>(size) != former.size() ||
      former[static_cast<size_t>(rank)] != mate.rank) {
    std::fprintf(stderr, "rank %d is rank %d of %d\n", mate.rank, rank, size);
    ++mate.board.wrong;
    return 0;
  }
  wl_window_t* window = nullptr;
  const uint64_t bytes = 4 * count * static_cast<uint64_t>(size + 1);
  int32_t code = wl_window_create(comm, bytes, 0, &window, error);
  for (uint32_t round = 0; code == WL_OK && round < rounds; ++round) {
    auto* in = static_cast<uint32_t*>(wl_window_address(window, rank));
    uint32_t* out = in + count;
    for (uint64_t i = 0; i < count; ++i) in[i] = broughtBy(mate.rank, round, i);
    code = allGather(comm, in, out, count, WL_U32, 0, error);
    uint64_t wrong = 0;
    for (int from = 0; code == WL_OK && from < size; ++from)
      for (uint64_t i = 0; i < count; ++i)
        wrong += out[static_cast<uint64_t>(from) * count + i] !=
                 broughtBy(former[static_cast<size_t>(from)], round, i);
    EXPECT_OF_MATE(mate, wrong == 0);
  }
  wl_window_free(window);
  return code;
}

}  // namespace windlass_test
