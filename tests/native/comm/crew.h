// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, as processes, or as both: forked processes of some ranks each, which meet by
// the C ABI and may be killed and stopped.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/native/comm/forks.h"

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

// What all processes of a crew and the test see.
struct Board {
  Roster roster;
  std::atomic<int> at[kMostCrew];  // of each rank: how far it is, as its test counts
  std::atomic<int64_t> struckNs;   // when the test killed or stopped a process
  std::atomic<int64_t> sawNs[kMostCrew];  // when each rank got its error
  std::atomic<int64_t> shrunkNs[kMostCrew];
  std::atomic<int> wrong;

  // Waits until `holds`; false where that lasts too long.
  template <class Holds>
  static bool await(Holds&& holds, int64_t limitNs = 60'000 * kMs) {
    for (const int64_t start = wl_clock_ns(); !holds();) {
      if (wl_clock_ns() - start > limitNs) return false;
      usleep(50);
    }
    return true;
  }
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
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = crew.ranks();
    config.first_sequence = 0xffffff00u;
    config.deadline_ns = deadlineNs;
    config.cores = cores;
    config.device_cores = deviceCores();
    Error error;
    const int32_t code = crew.processes == 1 ? wl_group_create(&config, &local_, &error)
                                             : wl_group_share(&config, &file_, &error);
    if (code != WL_OK) std::abort();
  }
  ~Muster() {
    forks_.reset();
    wl_group_release(local_);
    if (file_ >= 0) wl_file_close(file_);
  }
  Muster(const Muster&) = delete;
  Muster& operator=(const Muster&) = delete;

  Board& board() { return *board_; }
  pid_t pid(int process) const { return forks_->pids()[static_cast<size_t>(process)]; }
  // The test's own view of the control block.
  wl_group_t* attach() const {
    wl_group_t* group = nullptr;
    Error error;
    if (wl_group_attach(file_, &group, &error) != WL_OK) std::abort();
    return group;
  }

  // Runs the body on every rank, and `meanwhile` beside them. In one process: threads of this one.
  void run(const std::function<void(Mate&)>& body, const std::function<void()>& meanwhile = {}) {
    if (crew_.processes == 1) {
      std::thread beside([&] {
        if (meanwhile) meanwhile();
      });
      runThreads(local_, 0, body);
      beside.join();
      return;
    }
    forks_.emplace(crew_.processes, [&](int process) {
      wl_group_t* group = attach();
      board_->roster.meet(group, process, crew_.processes, crew_.ranks(), silenceNs_);
      runThreads(group, process, body);
      wl_group_release(group);
      return 0;
    });
    if (meanwhile) meanwhile();
    ends = forks_->wait(120'000 * kMs);
    board_->wrong += forks_->late();
  }

  // How each process ended: 0, or minus the signal.
  std::vector<int> ends;

 private:
  void runThreads(wl_group_t* group, int process, const std::function<void(Mate&)>& body) {
    std::vector<wl_comm_t*> comms;
    for (int rank = process; rank < crew_.ranks(); rank += crew_.processes) {
      Error error;
      comms.push_back(nullptr);
      if (wl_group_join(group, rank, &comms.back(), &error) != WL_OK) std::abort();
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < comms.size(); ++i) {
      threads.emplace_back([&, i] {
        Mate mate = {process + static_cast<int>(i) * crew_.processes, i == 0, comms[i], *board_};
        body(mate);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (wl_comm_t* comm : comms) wl_comm_free(comm);
  }

  const Crew crew_;
  const int64_t silenceNs_;
  const Shared<Board> board_;
  int32_t file_ = -1;
  wl_group_t* local_ = nullptr;
  std::optional<Forks> forks_;
};

// What a process has that a communicator takes: compared before and after.
struct Held {
  int files;
  int threads;
  int mappings;  // of memory that processes share

  static Held look() {
    return {entries("/proc/self/fd"), entries("/proc/self/task"), sharedMappings()};
  }
  bool operator==(const Held& other) const {
    return files == other.files && threads == other.threads && mappings == other.mappings;
  }

 private:
  static int entries(const char* path) {
    DIR* folder = opendir(path);
    int count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
  }
  static int sharedMappings() {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;
    while (std::fgets(line, sizeof line, maps) != nullptr)
      if (std::strstr(line, "memfd:windlass") != nullptr) ++count;
    std::fclose(maps);
    return count;
  }
};

// What element `i` of what `rank` brings in round `round` is.
inline uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

// Whether all-gathers of `count` elements of each rank in a window of the communicator bring what
// each rank, which `former` numbers, brought; 0, or the code that was not WL_OK.
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
