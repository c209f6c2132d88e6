// SPDX-License-Identifier: Apache-2.0
// Runs a body on every rank of a communicator, one thread a rank. WINDLASS_TEST_LAUNCH has the
// ranks live in several processes, each of which runs the whole test with its own ranks: what a
// test checks of a rank it checks in the body, and what ranks count together is Shared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/core/namespaces.h"
#include "tests/native/core/test_processes.h"
#include "windlass/windlass.h"

namespace windlass_test {

// Sanitizers slow the ranks down tenfold and more: suites repeat this many times less under them.
#if defined(__SANITIZE_THREAD__)
constexpr int kSlow = 40;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kSlow = 20;
#else
constexpr int kSlow = 1;
#endif

// Cores a rank of the in-line executor, which runs all operations then; 0: the cpu executor does.
inline int deviceCores() {
  static const int cores = [] {
    const char* given = std::getenv("WINDLASS_TEST_DEVICE_CORES");
    return given == nullptr ? 0 : std::atoi(given);
  }();
  return cores;
}

inline const std::string& launch() {
  static const std::string name = [] {
    const char* given = std::getenv("WINDLASS_TEST_LAUNCH");
    return std::string(given == nullptr ? "threads" : given);
  }();
  return name;
}

// Hosts among which ranks are dealt out; 1: they are this one's.
inline int hosts(int ranks) {
  return launch().compare(0, 5, "hosts") == 0 ? std::min(ranks, mostHosts()) : 1;
}

// Processes among which ranks are dealt out; 0: they are threads of this one.
inline int processes(int ranks) {
  if (launch() == "processes" || launch() == "hosts_processes") return ranks;  // one a rank
  if (launch() == "both") return std::min(ranks, 2);
  if (launch() == "hosts") return hosts(ranks);
  return launch() == "threads" ? 0 : (std::abort(), 0);
}

// Host of a process. If a host is one process, consecutive ranks are on different hosts. Otherwise
// consecutive ranks share a host, as launchers place them.
inline int hostOfProcess(int process, int count, int apart) {
  return process * apart / count;
}

// Whether this run takes what CI has no time for.
inline bool longForm() {
  return std::getenv("WINDLASS_TEST_LONG") != nullptr;
}

// Whether random tests run a tenth of the long form: WINDLASS_TEST_VOLUME is "tenth".
inline bool isTenth() {
  const char* const volume = std::getenv("WINDLASS_TEST_VOLUME");
  return volume != nullptr && std::string(volume) == "tenth";
}

// Number of repetitions of a random test: `most` in the long form, a tenth of it but at least
// `usual` in the volumes suite, `usual` otherwise.
inline int repetitions(int usual, int most) {
  if (longForm()) return most;
  return isTenth() ? std::max(usual, most / 10) : usual;
}

// True if the target runs kernels on an emulator of an architecture. That takes a hundred times as
// long, and ranks reach only windows of one another.
inline bool isChecked() {
  static const bool is = std::strcmp(wl_target(), "sim") != 0;
  return is;
}

// Divisor of the lengths of long series of operations. The sanitizers' own divisors are large
// enough for the usual form.
inline int slow() {
  if (isChecked()) return longForm() ? 20 : 100;
  const int usual = longForm() ? 1 : kSlow > 1 || isTenth() ? 2 : 6;
  return (deviceCores() > 0 || processes(1) > 0 ? 4 * kSlow : kSlow) * usual;
}

// Whether few of a suite's cases do: a sanitizer sees the same accesses with few as with many, and
// the in-line executor the same waits, and processes differ in little.
inline bool few() {
  return (kSlow > 1 || deviceCores() > 0 || processes(1) > 0) && !longForm();
}

// Numbers of ranks that suites go over. Under a sanitizer the most run only as threads. Two
// processes of one rank each are the launch `processes` with 2 ranks.
inline std::vector<int> rankCounts() {
  const bool isSanitized = kSlow > 1 && !longForm();
  if (const int apart = hosts(mostHosts()); apart > 1) {
    // One to four of each host, and where one has one more.
    if (longForm()) return {apart, apart + 1, 2 * apart, 3 * apart, 4 * apart};
    if (isSanitized) return {2 * apart + 1};
    return {apart, apart + 1, 3 * apart};
  }
  if (isSanitized && (deviceCores() > 0 || processes(1) > 0)) return {5};
  if (few() && launch() == "both") return {5};
  if (few()) return {1, 2, 5};
  if (longForm()) return {1, 2, 3, 4, 7, 8};
  return {1, 2, 3, 4, 7};
}

inline uint64_t seed() {
  static const uint64_t value = [] {
    const char* given = std::getenv("WINDLASS_TEST_SEED");
    const uint64_t chosen =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("seed %llu (WINDLASS_TEST_SEED repeats it)\n",
                static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return value;
}

constexpr int64_t kMs = 1'000'000;

// Other work on the machine only adds time, so the best of several attempts is what a bound is held
// against.
constexpr int kAttempts = 50;

// Waits until `holds`; false where that lasts too long.
template <class Holds>
bool await(Holds&& holds, int64_t limitNs = 60'000 * kMs) {
  for (const int64_t start = wl_clock_ns(); !holds();) {
    if (wl_clock_ns() - start > limitNs) return false;
    usleep(50);
  }
  return true;
}

struct Error : wl_error_t {
  Error() : wl_error_t() { struct_size = sizeof(wl_error_t); }
};

// One look at whether the text holds the part, that prints both when it does not.
inline testing::AssertionResult contains(const char* text, const std::string& part) {
  if (std::strstr(text, part.c_str()) != nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << text << "\" does not say \"" << part << '"';
}

struct LocalRanks {
  explicit LocalRanks(int ranks, int64_t deadlineNs = 20'000'000'000, uint32_t firstSequence = 1,
                      int cores = 0, int blocks = 0) {
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    config.first_sequence = firstSequence;
    config.cores = cores;
    config.blocks = blocks;
    config.deadline_ns = deadlineNs;
    config.device_cores = ranks <= WL_MAX_DEVICE_RANKS ? deviceCores() : 0;
    comms.resize(static_cast<size_t>(ranks));
    seed();  // one for all processes
    if (processes(ranks) > 0) {
      attach(config);
    } else {
      Error error;
      EXPECT_EQ(WL_OK, wl_group_create(&config, &group, &error)) << error.message;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      Error error;
      if (!isOwn(rank)) continue;
      EXPECT_EQ(WL_OK, wl_group_join(group, rank, &comms[static_cast<size_t>(rank)], &error))
          << error.message;
    }
    if (others) watchOthers();
  }
  ~LocalRanks() {
    for (wl_comm_t* comm : comms) wl_comm_free(comm);
    wl_group_release(group);
  }
  LocalRanks(const LocalRanks&) = delete;

  int size() const { return static_cast<int>(comms.size()); }

  void run(const std::function<void(int rank, wl_comm_t* comm)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      if (isOwn(rank))
        threads.emplace_back([&, rank] { body(rank, comms[static_cast<size_t>(rank)]); });
    }
    for (std::thread& thread : threads) thread.join();
    if (others) others->arriveAndWait();
  }

  // Whether the rank is one of this process.
  bool isOwn(int rank) const { return !others || rank % others->count() == others->own(); }

  // Processes of the other ranks, if the ranks live in several. The last member to be destroyed.
  std::unique_ptr<TestProcesses> others;
  wl_group_t* group = nullptr;
  std::vector<wl_comm_t*> comms;  // null for those of other processes

 private:
  void attach(wl_group_config_t config) {
    Error error;
    const int count = processes(config.ranks);
    const int apart = hosts(config.ranks);
    std::vector<int32_t> hostOf;
    for (int rank = 0; rank < config.ranks; ++rank)
      hostOf.push_back(hostOfProcess(rank % count, count, apart));
    if (apart > 1) config.hosts = hostOf.data();
    std::vector<int32_t> files(static_cast<size_t>(apart), -1);  // of each host its own
    for (int32_t& file : files)
      EXPECT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
    const Shared<WireNames> names;
    others = std::make_unique<TestProcesses>(count);
    const auto host = static_cast<size_t>(hostOfProcess(others->own(), count, apart));
    if (apart > 1) enterHost(static_cast<int>(host));
    EXPECT_EQ(WL_OK, wl_group_attach(files[host], &group, &error)) << error.message;
    for (const int32_t file : files) wl_file_close(file);
    if (apart > 1) connect(*names);
  }

  struct WireNames {
    static constexpr uint64_t kRoom = 4096;
    uint64_t bytes[16];
    uint8_t names[16][kRoom];
  };

  void connect(WireNames& names) {
    Error error;
    const std::vector<int32_t> own = ranksOf(others->own(), others->count(), size());
    EXPECT_EQ(WL_OK, wl_group_open_wire(group, own.data(), static_cast<uint32_t>(own.size()),
                                        &error))
        << error.message;
    EXPECT_EQ(WL_OK, wl_group_wire_name(group, names.names[others->own()], WireNames::kRoom,
                                        &names.bytes[others->own()], &error));
    others->arriveAndWait();
    std::vector<uint8_t> all;
    for (int process = 0; process < others->count(); ++process)
      all.insert(all.end(), names.names[process], names.names[process] + names.bytes[process]);
    EXPECT_EQ(WL_OK, wl_group_connect(group, all.data(), names.bytes,
                                      static_cast<uint32_t>(others->count()), 0, &error))
        << error.message;
    others->arriveAndWait();
  }

  void watchOthers() {
    const int count = others->count();
    const int host = hostOfProcess(others->own(), count, hosts(size()));
    for (int process = 0; process < count; ++process) {
      // Only the wire shows the state of processes on another host.
      if (process != others->own() && hostOfProcess(process, count, hosts(size())) == host) {
        watch(group, others->name(process), ranksOf(process, others->count(), size()), 0);
      }
    }
    others->arriveAndWait();
  }
};

// Until that rank, as `comm` sees it, is inside the operation.
inline void awaitInside(wl_comm_t* comm, int rank, int operation) {
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  const int64_t start = wl_clock_ns();
  do {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    ASSERT_EQ(WL_OK, wl_comm_state(comm, rank, &state));
    ASSERT_LT(wl_clock_ns() - start, 60'000 * kMs) << "rank " << rank << " has not come";
  } while (state.busy == 0 || state.operation != operation);
}

// Threads that compute and never yield, beside the ranks.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        volatile uint64_t sum = 0;
        while (!stop_.load(std::memory_order_relaxed)) sum = sum + 1;
      });
    }
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// The element that `from` sends as number `index` of its chunk for `to`, in operation `iteration`.
inline uint32_t stamp(uint32_t iteration, uint32_t from, uint32_t to, uint64_t index) {
  uint64_t x = (uint64_t{iteration} << 40) ^ (uint64_t{from} << 28) ^ (uint64_t{to} << 16) ^ index;
  x *= 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(x >> 32);
}

inline void spinFor(int64_t ns) {
  const int64_t start = wl_clock_ns();
  while (wl_clock_ns() - start < ns) {
  }
}

}  // namespace windlass_test
