// SPDX-License-Identifier: Apache-2.0
// What operations change of the threads that call them, and what those of the library take.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace callers_threads_test {

constexpr int kRanks = 4;

// Of sched_getattr(2).
struct Scheduling {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;

  static Scheduling ofThisThread() {
    Scheduling attributes = {};
    EXPECT_EQ(0, syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0));
    return attributes;
  }
  bool operator==(const Scheduling& other) const {
    return std::memcmp(this, &other, sizeof other) == 0;
  }
};

cpu_set_t maskOf(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(0, sched_getaffinity(thread, sizeof mask, &mask));
  return mask;
}

// The first two cores that this process may use; fewer where there are.
cpu_set_t twoCores() {
  const cpu_set_t allowed = maskOf(0);
  cpu_set_t two;
  CPU_ZERO(&two);
  for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &two);
  }
  return two;
}

// While it lasts, the cores to which the library moves the calling thread.
class Moves {
 public:
  Moves() { ofThread = this; }
  ~Moves() { ofThread = nullptr; }
  void add(const cpu_set_t& mask) {
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  std::vector<int> cores;
  static thread_local Moves* ofThread;
};
thread_local Moves* Moves::ofThread = nullptr;

// Whether the calling thread's mask reads as empty.
thread_local bool hasNoCore = false;

pid_t threadId() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

std::set<pid_t> threadsOfThisProcess() {
  std::set<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    all.insert(std::stoi(entry.path().filename()));
  return all;
}

// Barriers until it has held on every rank; whether it has within 20 s.
bool enterUntil(wl_comm_t* comm, const std::function<bool()>& holds) {
  const int64_t start = wl_clock_ns();
  uint64_t all = 0;
  for (uint64_t own = 0; all == 0 && wl_clock_ns() - start < 20'000 * kMs;) {
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(WL_OK, callBarrier(comm, 0, nullptr));
      own = own == 1 || holds() ? 1 : 0;
    }
    EXPECT_EQ(WL_OK, allReduce(comm, &own, &all, 1, WL_U64, WL_MIN, WL_AUTO, 0, nullptr));
  }
  return all == 1;
}

// True if the rank met threads that compute on the ranks' cores.
bool hasMetThread(wl_comm_t* comm, int rank) {
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  wl_comm_state(comm, rank, &state);
  return state.contested > 0;
}

TEST(CallersThreads, KeepTheirAffinityAndScheduling) {
  const cpu_set_t two = twoCores();
  const cpu_set_t before = maskOf(0);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof two, &two));  // those made from here on inherit it
  {
    const BusyThreads busy(2);
    LocalRanks ranks(kRanks, 60'000 * kMs, 1, 2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const Scheduling scheduling = Scheduling::ofThisThread();
      EXPECT_TRUE(enterUntil(comm, [&] { return hasMetThread(comm, rank); }));
      const cpu_set_t now = maskOf(0);
      EXPECT_TRUE(CPU_EQUAL(&two, &now));
      EXPECT_TRUE(scheduling == Scheduling::ofThisThread());
    });
  }
  ASSERT_EQ(0, sched_setaffinity(0, sizeof before, &before));
}

// Whether the kernel grants a thread the slice that it asks for: from 6.12 on.
bool kernelGrantsSlices() {
  bool granted = false;
  std::thread([&] {
    Scheduling attributes = Scheduling::ofThisThread();
    attributes.runtime = 200'000;
    granted = syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 &&
              Scheduling::ofThisThread().runtime == 200'000;
  }).join();
  return granted;
}

class Adjusted : public testing::TestWithParam<bool> {};

TEST_P(Adjusted, WhereAllowedTakesShortSlicesForAWhileAndKeepsItsAffinity) {
  if (!kernelGrantsSlices()) GTEST_SKIP() << "this kernel grants no slices";
  const bool adopts = GetParam();
  const Scheduling usual = Scheduling::ofThisThread();
  const cpu_set_t two = twoCores();
  const cpu_set_t before = maskOf(0);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof two, &two));
  {
    auto busy = std::make_unique<BusyThreads>(2);
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = kRanks;
    config.cores = 2;
    config.adjust_threads = adopts ? 0 : 1;
    wl_group_t* group = nullptr;
    ASSERT_EQ(WL_OK, wl_group_create(&config, &group, nullptr));
    wl_comm_t* comms[kRanks] = {};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(WL_OK, wl_group_join(group, rank, &comms[rank], nullptr));
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        if (adopts) {
          EXPECT_EQ(0, wl_thread_adopt(-1, 0));
          EXPECT_EQ(1, wl_thread_adopt(-1, 0));
        }
        EXPECT_TRUE(enterUntil(comms[rank], [&] {
          if (Scheduling::ofThisThread().runtime != 100'000) return false;
          std::thread([&] { EXPECT_TRUE(usual == Scheduling::ofThisThread()); }).join();
          return true;
        }));
        const cpu_set_t now = maskOf(0);
        EXPECT_TRUE(CPU_EQUAL(&two, &now));
        if (rank == 0) busy.reset();
        EXPECT_TRUE(enterUntil(comms[rank], [&] {
          return Scheduling::ofThisThread().runtime == usual.runtime;
        })) << "nobody gave them back";
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (wl_comm_t* comm : comms) wl_comm_free(comm);
    wl_group_release(group);
  }
  ASSERT_EQ(0, sched_setaffinity(0, sizeof before, &before));
}

INSTANTIATE_TEST_SUITE_P(Threads, Adjusted, testing::Bool(),
                         [](const auto& by) { return by.param ? "Adopted" : "ByTheConfig"; });

// One rank shares the first core with a thread that computes. The others share the second core.
TEST(CallersThreads, TakeShortSlicesTogetherWhereOneOfThemMeetsAThread) {
  if (!kernelGrantsSlices()) GTEST_SKIP() << "this kernel grants no slices";
  const cpu_set_t before = maskOf(0);
  cpu_set_t first = twoCores();
  if (CPU_COUNT(&first) < 2) GTEST_SKIP() << "this takes two cores";
  cpu_set_t second = first;
  for (size_t core = 0; CPU_COUNT(&second) == 2; ++core) CPU_CLR(core, &second);
  CPU_XOR(&first, &first, &second);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof first, &first));
  {
    const BusyThreads busy(1);
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = kRanks;
    config.cores = 2;
    config.adjust_threads = 1;
    wl_group_t* group = nullptr;
    ASSERT_EQ(WL_OK, wl_group_create(&config, &group, nullptr));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      wl_comm_t* comm = nullptr;
      ASSERT_EQ(WL_OK, wl_group_join(group, rank, &comm, nullptr));
      threads.emplace_back([&, rank, comm] {
        const cpu_set_t& own = rank == 0 ? first : second;
        EXPECT_EQ(0, sched_setaffinity(0, sizeof own, &own));
        EXPECT_TRUE(enterUntil(comm, [] {
          return Scheduling::ofThisThread().runtime == 100'000;
        })) << "rank " << rank;
        wl_comm_free(comm);
      });
    }
    for (std::thread& thread : threads) thread.join();
    wl_group_release(group);
  }
  ASSERT_EQ(0, sched_setaffinity(0, sizeof before, &before));
}

// Ranks crowd one core, may use the other one too, and are put back on the first at any time.
TEST(CallersThreads, KeepTheAffinityThatOthersGiveThemInMidOperation) {
  const cpu_set_t two = twoCores();
  if (CPU_COUNT(&two) < 2) GTEST_SKIP() << "this takes two cores";
  cpu_set_t one = two;
  for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 2; ++core) CPU_CLR(core, &one);
  LocalRanks ranks(kRanks, 60'000 * kMs, 1, 2);
  std::atomic<pid_t> threads[kRanks] = {};
  std::atomic<bool> over{false};
  std::thread changer([&] {
    for (std::atomic<pid_t>& thread : threads) {
      while (thread == 0) std::this_thread::yield();
    }
    std::mt19937_64 random(seed());
    const auto give = [&](const cpu_set_t& mask) {
      for (const std::atomic<pid_t>& thread : threads)
        EXPECT_EQ(0, sched_setaffinity(thread, sizeof mask, &mask));
    };
    int changed = 0;
    for (int i = 0; i < 1500; ++i) {
      give(two);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      give(one);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      for (const std::atomic<pid_t>& thread : threads) {
        const cpu_set_t now = maskOf(thread);
        changed += CPU_EQUAL(&one, &now) ? 0 : 1;
      }
    }
    EXPECT_EQ(0, changed) << "masks of threads other than what was set last";
    over = true;
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    threads[rank] = threadId();
    for (uint32_t stop = 0; stop == 0;) {
      for (int i = 0; i < 20; ++i) ASSERT_EQ(WL_OK, callBarrier(comm, 0, nullptr));
      const uint32_t own = over ? 1 : 0;
      ASSERT_EQ(WL_OK, allReduce(comm, &own, &stop, 1, WL_U32, WL_MAX, WL_AUTO, 0, nullptr));
    }
  });
  changer.join();
}

// On threads of its own each, since an adopted one stays so.
void onThread(const std::function<void()>& body) {
  std::thread(body).join();
}

TEST(AdoptedThreads, BeginOnTheCoreOfTheirPlaceAndKeepTheirMask) {
  const cpu_set_t allowed = maskOf(0);
  const int cores = CPU_COUNT(&allowed);
  for (int place = 0; place < 2 * cores; ++place) {
    onThread([&] {
      EXPECT_EQ(0, wl_thread_adopt(place, 0));
      const cpu_set_t now = maskOf(0);
      EXPECT_TRUE(CPU_EQUAL(&allowed, &now)) << place;
    });
  }
}

TEST(AdoptedThreads, StayOnOneCoreOfThoseThatTheyMightUse) {
  const cpu_set_t two = twoCores();
  for (int place = 0; place < 5; ++place) {
    onThread([&] {
      ASSERT_EQ(0, sched_setaffinity(0, sizeof two, &two));
      EXPECT_EQ(0, wl_thread_adopt(place, 1));
      const cpu_set_t now = maskOf(0);
      EXPECT_EQ(1, CPU_COUNT(&now));
      int core = 0;
      for (int before = place % CPU_COUNT(&two); !CPU_ISSET(core, &two) || before-- > 0;) ++core;
      EXPECT_TRUE(CPU_ISSET(core, &now)) << place;
      EXPECT_EQ(core, sched_getcpu());
      EXPECT_EQ(1, wl_thread_adopt(place + 1, 1));
      const cpu_set_t again = maskOf(0);
      EXPECT_TRUE(CPU_EQUAL(&now, &again));
      onThread([&] {  // a thread that it makes inherits the mask
        const cpu_set_t inherited = maskOf(0);
        EXPECT_TRUE(CPU_EQUAL(&now, &inherited));
      });
    });
  }
}

// One that a launcher bound to a core stays there, whatever its place.
TEST(AdoptedThreads, NeverWidenAMask) {
  cpu_set_t one = twoCores();
  for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 2; ++core) CPU_CLR(core, &one);
  for (int stays = 0; stays < 2; ++stays) {
    onThread([&] {
      ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
      EXPECT_EQ(0, wl_thread_adopt(7, stays));
      const cpu_set_t now = maskOf(0);
      EXPECT_TRUE(CPU_EQUAL(&one, &now));
    });
  }
}

// Simulates that the last core that a thread may use goes offline.
TEST(AdoptedThreads, AreNotPlacedIfTheirMaskHasNoCore) {
  for (int stays = 0; stays < 2; ++stays) {
    onThread([&] {
      const cpu_set_t before = maskOf(0);
      hasNoCore = true;
      EXPECT_EQ(0, wl_thread_adopt(0, stays));
      hasNoCore = false;
      const cpu_set_t now = maskOf(0);
      EXPECT_TRUE(CPU_EQUAL(&before, &now));
    });
  }
}

// The library's own threads, which a pinned rank's first long operation makes, may use all cores,
// unless the process got fewer since.
class LibrarysThreads : public testing::TestWithParam<bool> {};

TEST_P(LibrarysThreads, HaveTheMaskFromBeforeTheirMakerWasPinned) {
  const cpu_set_t two = twoCores();
  if (CPU_COUNT(&two) < 2) GTEST_SKIP() << "this takes two cores";
  const std::set<pid_t> before = threadsOfThisProcess();
  LocalRanks ranks(1, 60'000 * kMs, 1, 2);
  const std::vector<float> in(1 << 20, 1);
  const cpu_set_t usual = maskOf(getpid());
  ranks.run([&](int, wl_comm_t* comm) {
    EXPECT_EQ(0, wl_thread_adopt(0, 1));
    const cpu_set_t one = maskOf(0);
    if (GetParam()) {
      ASSERT_EQ(0, sched_setaffinity(getpid(), sizeof one, &one));
    }
    std::vector<float> out(in.size());
    ASSERT_EQ(WL_OK, allReduce(comm, in.data(), out.data(), in.size(), WL_F32, WL_SUM, WL_AUTO, 0,
                               nullptr));
    const cpu_set_t pinned = maskOf(0);
    EXPECT_EQ(1, CPU_COUNT(&pinned));
    int made = 0;
    for (const pid_t thread : threadsOfThisProcess()) {
      if (before.count(thread) > 0 || thread == threadId()) continue;
      const cpu_set_t mask = maskOf(thread);
      EXPECT_EQ(GetParam(), CPU_COUNT(&mask) == 1);
      ++made;
    }
    EXPECT_GE(made, 1);
  });
  ASSERT_EQ(0, sched_setaffinity(getpid(), sizeof usual, &usual));
}

INSTANTIATE_TEST_SUITE_P(Threads, LibrarysThreads, testing::Bool(), [](const auto& by) {
  return by.param ? "OfAProcessWithFewerCores" : "OfAPinnedMaker";
});

// The signals that a thread blocks, one bit each; none for a thread that has ended.
uint64_t blockedBy(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("SigBlk:", 0) == 0) return std::stoull(line.substr(7), nullptr, 16);
  return 0;
}

uint64_t bitsOf(std::initializer_list<int> signals) {
  uint64_t bits = 0;
  for (const int signal : signals) bits |= uint64_t{1} << (signal - 1);
  return bits;
}

TEST(LibrarysThreads, HaveTheMaskFromBeforeTheProcesssFirstThreadWasPinned) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const cpu_set_t two = twoCores();
  if (CPU_COUNT(&two) < 2) GTEST_SKIP() << "this takes two cores";
  const auto countPinned = [&] {
    if (sched_setaffinity(0, sizeof two, &two) != 0 || threadId() != getpid()) return 100;
    const std::set<pid_t> before = threadsOfThisProcess();
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = 1;
    config.cores = 2;
    config.first_sequence = 1;
    wl_group_t* group = nullptr;
    wl_comm_t* comm = nullptr;
    if (wl_group_create(&config, &group, nullptr) != WL_OK) return 101;
    if (wl_group_join(group, 0, &comm, nullptr) != WL_OK) return 102;
    wl_thread_adopt(0, 1);
    std::vector<float> in(1 << 20, 1), out(in.size());
    if (allReduce(comm, in.data(), out.data(), in.size(), WL_F32, WL_SUM, WL_AUTO, 0, nullptr) !=
        WL_OK)
      return 103;
    int made = 0;
    int pinned = 0;
    for (const pid_t thread : threadsOfThisProcess()) {
      if (before.count(thread) > 0) continue;
      const cpu_set_t mask = maskOf(thread);
      ++made;
      pinned += CPU_COUNT(&mask) == 1 ? 1 : 0;
    }
    return made == 0 ? 104 : pinned;
  };
  EXPECT_EXIT(std::_Exit(countPinned()), testing::ExitedWithCode(0), "");
}

// Each sees where the other one has gone, and stays.
TEST(AdoptedThreads, OfTwoThatWaitOnOneCoreOneMoves) {
  const cpu_set_t two = twoCores();
  if (CPU_COUNT(&two) < 2) GTEST_SKIP() << "this takes two cores";
  cpu_set_t one = two;
  for (size_t core = CPU_SETSIZE; CPU_COUNT(&one) == 2;) CPU_CLR(--core, &one);
  LocalRanks ranks(2, 60'000 * kMs, 1, 2);
  std::atomic<int> met{0};
  std::array<int, 2> movedTo = {};
  int moves = 0;
  ranks.run([&](int rank, wl_comm_t* comm) {
    wl_thread_adopt(-1, 0);
    const std::vector<float> in(1 << 18, 1);
    std::vector<float> out(in.size());
    for (int i = 0; i < 400; ++i) {
      sched_setaffinity(0, sizeof one, &one);
      sched_setaffinity(0, sizeof two, &two);
      ++met;
      while (met.load() < 4 * i + 2) sched_yield();
      Moves own;
      ASSERT_EQ(WL_OK, allReduce(comm, in.data(), out.data(), in.size(), WL_F32, WL_SUM, WL_AUTO, 0,
                                 nullptr));
      movedTo[rank] = own.cores.empty() ? -1 : own.cores[0];
      ++met;
      while (met.load() < 4 * i + 4) sched_yield();
      if (rank == 0) {
        moves += movedTo[0] >= 0 || movedTo[1] >= 0 ? 1 : 0;
        EXPECT_TRUE(movedTo[0] < 0 || movedTo[0] != movedTo[1]) << "operation " << i;
      }
      usleep(5000);  // the least time between two moves is 4 ms
    }
  });
  if (moves == 0) GTEST_SKIP() << "nobody moved: other threads computed here all the time";
}

// A program's signals go to its own threads, and those of a fault to the thread that makes it.
TEST(ThreadsOfTheLibrary, TakeNoSignalsButThoseOfFaults) {
  // A sanitizer has threads of its own.
  const std::set<pid_t> before = threadsOfThisProcess();
  // More cores than ranks, so that each has a thread of the library beside its own.
  LocalRanks ranks(2, 60'000 * kMs, 1, 4);
  const std::vector<float> in(1 << 20, 1);
  std::array<pid_t, 2> own = {};
  ranks.run([&](int rank, wl_comm_t* comm) {
    own[rank] = threadId();
    std::vector<float> out(in.size());
    ASSERT_EQ(WL_OK, allReduce(comm, in.data(), out.data(), in.size(), WL_F32, WL_SUM, WL_AUTO, 0,
                               nullptr));
  });
  const uint64_t faults = bitsOf({SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP});
  const uint64_t others = bitsOf({SIGINT, SIGTERM, SIGCHLD, SIGUSR1});
  int found = 0;
  for (const pid_t thread : threadsOfThisProcess()) {
    // The ranks' threads may be listed after they were joined.
    if (before.count(thread) > 0 || thread == own[0] || thread == own[1]) continue;
    // A thread blocks all until its first instruction.
    const int64_t start = wl_clock_ns();
    while ((blockedBy(thread) & faults) != 0 && wl_clock_ns() - start < 20'000 * kMs) {
      std::this_thread::yield();
    }
    EXPECT_EQ(others, blockedBy(thread) & (faults | others));
    ++found;
  }
  EXPECT_GE(found, 1);
}

}  // namespace callers_threads_test
}  // namespace windlass_test

// Replaces the functions of the C library.
extern "C" int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* mask) noexcept {
  windlass_test::callers_threads_test::Moves* const moves =
      windlass_test::callers_threads_test::Moves::ofThread;
  if (moves != nullptr && thread == 0 && CPU_COUNT(mask) == 1) moves->add(*mask);
  return syscall(SYS_sched_setaffinity, thread, bytes, mask) < 0 ? -1 : 0;
}
extern "C" int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* mask) noexcept {
  CPU_ZERO_S(bytes, mask);
  if (thread == 0 && windlass_test::callers_threads_test::hasNoCore) return 0;
  return syscall(SYS_sched_getaffinity, thread, bytes, mask) < 0 ? -1 : 0;
}
