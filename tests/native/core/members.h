// SPDX-License-Identifier: Apache-2.0
// Ranks in several processes, forked, which start by the C ABI, each with a window.
#pragma once

#include <cstdlib>
#include <cstring>

#include "tests/native/core/forks.h"

namespace windlass_test {

constexpr uint64_t kWindowBytes = uint64_t{8} << 20;

// How many ranks, of which process p has p, p + processes and so on.
struct Spread {
  int processes;
  int ranks;
  int cores;
  int deviceCores;
  const char* use;  // WINDLASS_PEER_MEMORY
};

inline void PrintTo(const Spread& spread, std::ostream* out) {
  *out << spread.ranks << " ranks in " << spread.processes << " processes, " << spread.cores
       << " cores, " << spread.deviceCores << " device cores, " << spread.use;
}

// One rank in one of the processes.
struct Member {
  const Spread& spread;
  int rank;
  wl_comm_t* comm;
  unsigned char* window;  // its segment
};

// Runs the body on every rank; what it returns counts failures. The results of the processes: minus
// the signal where one ended by that. `before` runs in each process before it attaches.
class Members {
 public:
  Members(const Spread& spread, const std::function<int(Member&)>& body,
          const std::function<void(int process)>& before = {},
          const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = spread.ranks;
    config.first_sequence = 0xffffffe0u;
    config.cores = spread.cores;
    config.blocks = 1;
    config.deadline_ns = 20'000 * kMs;
    config.device_cores = spread.deviceCores;
    const ForkedGroup all(config, spread.processes);
    const Shared<std::atomic<int>> running;  // ranks that are in the body
    Forks forks(spread.processes, [&](int process) {
      if (spread.use != nullptr) setenv("WINDLASS_PEER_MEMORY", spread.use, 1);
      if (before) before(process);
      OwnRanks own(all, process);
      std::atomic<int> failures{0};
      own.run([&](int rank, wl_comm_t*& comm) {
        wl_window_t* window = nullptr;
        Error error;
        if (wl_window_create(comm, kWindowBytes, 0, &window, &error) != WL_OK) std::abort();
        Member member = {spread, rank, comm,
                         static_cast<unsigned char*>(wl_window_address(window, rank))};
        ++*running;
        failures += body(member);
        wl_window_free(window);
        wl_comm_free(comm);
        comm = nullptr;
      });
      return failures.load();
    });
    if (meanwhile) {
      await([&] { return *running == spread.ranks; });
      meanwhile(forks.pids());
    }
    results = forks.wait();
  }

  std::vector<int> results;
};

// Results of all processes if nothing fails.
inline std::vector<int> allWell(const Spread& spread) {
  return std::vector<int>(static_cast<size_t>(spread.processes), 0);
}

// 0, or the line of the first check that fails.
#define CHECK_IN_MEMBER(condition)                                                           \
  if (!(condition))                                                                          \
  return std::fprintf(stderr, "rank %d, line %d: %s: %s\n", member.rank, __LINE__, #condition, \
                      error.message),                                                        \
         1

inline bool mayRead() {
  wl_peer_memory_t memory = {};
  memory.struct_size = sizeof memory;
  Error error;
  return wl_comm_peer_memory(nullptr, &memory, &error) == WL_OK &&
         memory.form == WL_PEER_MEMORY_READV;
}

// Skips what the system forbids.
#define NEEDS_READING_FOR(use)                              \
  if (std::strcmp(use, "readv") == 0 && !mayRead()) {       \
    GTEST_SKIP() << "this process may not read others' memory"; \
  }

}  // namespace windlass_test
