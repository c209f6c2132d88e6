// SPDX-License-Identifier: Apache-2.0
// How processes reach one another's ordinary memory: which way ranks agree on, and why; and what a
// call ends in where a peer ends, hangs or names what is not there.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>

#include "tests/native/collective_calls.h"
#include "tests/native/core/children.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/members.h"

namespace windlass_test {
namespace peer_access_test {

// Makes the kernel refuse this system call to this process from now on: every call, or calls whose
// third argument is `third`.
void forbid(uint32_t call, int refusal, int64_t third = -1) {
  constexpr uint32_t kCall = offsetof(seccomp_data, nr);
  constexpr uint32_t kThird = offsetof(seccomp_data, args[2]);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCall),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, third < 0 ? kCall : kThird),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, third < 0 ? call : static_cast<uint32_t>(third), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(refusal)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {6, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::abort();
  }
}

void forbidReading() {
  forbid(SYS_process_vm_readv, EPERM);
}

// The control block reserves its memory by this call.
void forbidReserving() {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
  forbid(SYS_madvise, ENOMEM, kPopulateWrite);
}

// ---- which way, and why ------------------------------------------------------------------------

// An all-reduce of ordinary memory, in place, of what no rank sends with its ENTER.
int reduceOrdinary(Member& member, Error* error, int64_t deadlineNs = 0,
                   uint64_t count = 100'000) {
  std::vector<uint32_t> own(count, static_cast<uint32_t>(member.rank) + 1);
  const int code = allReduce(member.comm, own.data(), own.data(), count, WL_U32, WL_SUM, WL_AUTO,
                             deadlineNs, error);
  // Ranks of this process may still read what is named there.
  while (wl_comm_quiescent(member.comm) == 0) usleep(100);
  const auto ranks = static_cast<uint32_t>(member.spread.ranks);
  const uint32_t wanted = code == WL_OK ? ranks * (ranks + 1) / 2
                                        : static_cast<uint32_t>(member.rank) + 1;
  if (code != WL_OK && code != WL_UNSUPPORTED) return code;
  const bool isRight = std::all_of(own.begin(), own.end(),
                                   [&](uint32_t value) { return value == wanted; });
  return isRight ? code : -1;
}

wl_peer_memory_t peerMemory(const wl_comm_t* comm) {
  wl_peer_memory_t memory = {};
  memory.struct_size = sizeof memory;
  Error error;
  EXPECT_EQ(WL_OK, wl_comm_peer_memory(comm, &memory, &error)) << error.message;
  return memory;
}

TEST(OrdinaryMemoryOfProcesses, GoesThroughStagesWhereTheKernelForbidsReading) {
  const Spread spread = {3, 3, 64, 0, "auto"};
  const auto forbid = [](int process) {
    if (process == 1) forbidReading();
  };
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        CHECK_IN_MEMBER(peerMemory(member.comm).form == WL_PEER_MEMORY_OPEN);
        CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_OK);
        const wl_peer_memory_t memory = peerMemory(member.comm);
        CHECK_IN_MEMBER(memory.form == WL_PEER_MEMORY_STAGE);
        CHECK_IN_MEMBER(contains(memory.why, "the process of rank 1 can't read all others'"));
        CHECK_IN_MEMBER(member.rank != 1 || contains(memory.why, "Operation not permitted"));
        return 0;
      },
      forbid);
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, GoesThroughStagesWhereItIsShortUnlessReadingIsForced) {
  NEEDS_READING_FOR("readv")
  for (const char* use : {"auto", "readv"}) {
    const Spread spread = {3, 3, 64, 0, use};
    const Members all(spread, [&](Member& member) {
      Error error;
      CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_OK);
      CHECK_IN_MEMBER(peerMemory(member.comm).form == WL_PEER_MEMORY_READV);
      CHECK_IN_MEMBER(callBarrier(member.comm, 0, &error) == WL_OK);
      forbidReading();
      const bool isForced = std::strcmp(use, "readv") == 0;
      for (int round = 0; round < 5; ++round) {
        const int code = reduceOrdinary(member, &error, 0, 4'000);
        CHECK_IN_MEMBER(code == (isForced ? WL_ABORTED : WL_OK));
      }
      CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_ABORTED);
      CHECK_IN_MEMBER(contains(error.message, "can't read what rank"));
      return 0;
    });
    EXPECT_EQ(allWell(spread), all.results) << use;
  }
}

TEST(OrdinaryMemoryOfProcesses, IsReadWhereItIsShortAndAStageIsLacking) {
  NEEDS_READING_FOR("readv")
  const Spread spread = {3, 3, 64, 0, "auto"};
  const auto lack = [](int process) {
    if (process == 1) forbidReserving();
  };
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        for (int round = 0; round < 5; ++round)
          CHECK_IN_MEMBER(reduceOrdinary(member, &error, 0, 4'000) == WL_OK);
        const wl_peer_memory_t memory = peerMemory(member.comm);
        CHECK_IN_MEMBER(memory.form == WL_PEER_MEMORY_READV);
        CHECK_IN_MEMBER(contains(memory.why, "rank 1 has no memory for a stage"));
        CHECK_IN_MEMBER(contains(memory.why, "madvise") == (member.rank == 1));
        CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_OK);
        return 0;
      },
      lack);
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, EndsTheCallWhereItIsNeitherReadNorStaged) {
  const Spread spread = {2, 2, 64, 0, "auto"};
  const auto lack = [](int process) {
    if (process == 0) forbidReading();
    if (process == 1) forbidReserving();
  };
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_RESOURCE);
        CHECK_IN_MEMBER(contains(error.message, "rank 1: cannot share"));
        return 0;
      },
      lack);
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, IsRefusedWhereReadingIsForcedAndForbidden) {
  const Spread spread = {2, 2, 64, 0, nullptr};
  const auto choose = [](int process) {
    setenv("WINDLASS_PEER_MEMORY", process == 0 ? "readv" : "auto", 1);
    if (process == 1) forbidReading();
  };
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        for (int round = 0; round < 3; ++round) {
          CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_UNSUPPORTED);
          CHECK_IN_MEMBER(contains(error.message, "WINDLASS_PEER_MEMORY is readv in the process "
                                                  "of rank 0"));
          CHECK_IN_MEMBER(contains(error.message, "that of rank 1 can't read all others' memory"));
          const wl_peer_memory_t memory = peerMemory(member.comm);
          CHECK_IN_MEMBER(memory.form == WL_PEER_MEMORY_REFUSED);
          CHECK_IN_MEMBER(contains(memory.why, "is readv in the process of rank 0, and that of "
                                               "rank 1 can't read all others' memory"));
        }
        // Nothing else is harmed.
        auto* window = reinterpret_cast<uint32_t*>(member.window);
        std::fill_n(window, 100'000, 1);
        CHECK_IN_MEMBER(allReduce(member.comm, window, window, 100'000, WL_U32, WL_SUM, WL_AUTO, 0,
                                  &error) == WL_OK);
        CHECK_IN_MEMBER(window[99'999] == 2);
        return 0;
      },
      choose);
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, AgreesWhereProcessesAreSetDifferently) {
  const Spread spread = {2, 2, 64, 0, nullptr};
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_OK);
        const wl_peer_memory_t memory = peerMemory(member.comm);
        CHECK_IN_MEMBER(memory.form == WL_PEER_MEMORY_STAGE);
        CHECK_IN_MEMBER(contains(memory.why, "is stage in the process of rank 1"));
        // A part of it finds out for itself.
        wl_comm_t* part = nullptr;
        CHECK_IN_MEMBER(wl_comm_split(member.comm, 0, -member.rank, 0, &part, &error) == WL_OK);
        Member again = {member.spread, wl_comm_rank(part), part, nullptr};
        CHECK_IN_MEMBER(reduceOrdinary(again, &error) == WL_OK);
        CHECK_IN_MEMBER(contains(peerMemory(part).why, "is stage in the process of rank 0"));
        wl_comm_free(part);
        return 0;
      },
      [](int process) { setenv("WINDLASS_PEER_MEMORY", process == 0 ? "auto" : "stage", 1); });
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, RefusesASettingThatItDoesNotKnow) {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 2;
  Error error;
  int32_t file = -1;
  ASSERT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
  setenv("WINDLASS_PEER_MEMORY", "Stage", 1);
  wl_group_t* group = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(file, &group, &error));
  EXPECT_TRUE(contains(error.message, "WINDLASS_PEER_MEMORY is 'Stage', none of auto, readv and"));
  wl_peer_memory_t memory = {};
  memory.struct_size = sizeof memory;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_peer_memory(nullptr, &memory, &error));
  setenv("WINDLASS_PEER_MEMORY", "stage", 1);
  EXPECT_EQ(WL_PEER_MEMORY_STAGE, peerMemory(nullptr).form);
  unsetenv("WINDLASS_PEER_MEMORY");
  memory.struct_size = 8;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_peer_memory(nullptr, &memory, &error));
  wl_file_close(file);
}

TEST(OrdinaryMemoryOfProcesses, IsSharedByRanksOfOneProcess) {
  LocalRanks ranks(2);
  EXPECT_EQ(WL_PEER_MEMORY_SHARED, peerMemory(ranks.comms[0]).form);
}

// ---- faults ------------------------------------------------------------------------------------

class OrdinaryMemoryFaultsOfProcesses : public testing::TestWithParam<const char*> {};

TEST_P(OrdinaryMemoryFaultsOfProcesses, ADeathInAPullIsPeerLost) {
#if defined(__SANITIZE_THREAD__)
  // It does not see how the other process orders what threads of this one do.
  const Spread spread = {3, 3, 64, 0, GetParam()};
#else
  const Spread spread = {3, 6, 64, 0, GetParam()};
#endif
  NEEDS_READING_FOR(spread.use)
  std::mt19937_64 random(seed());
  for (int round = 0; round < repetitions(2, 50); ++round) {
    const auto afterUs = static_cast<useconds_t>(20'000 + random() % 60'000);
    const Members all(
        spread,
        [](Member& member) {
          Error error;
          int code = WL_OK;
          const int64_t start = wl_clock_ns();
          while (code == WL_OK && wl_clock_ns() - start < 60'000 * kMs)
            code = reduceOrdinary(member, &error, 0, 600'000 / kSlow);
          CHECK_IN_MEMBER(code == WL_PEER_LOST);
          // All ranks of its process.
          CHECK_IN_MEMBER(error.faulty_rank_count == member.spread.ranks / 3);
          CHECK_IN_MEMBER(error.faulty_ranks[0] == 1);
          CHECK_IN_MEMBER(error.faulty_rank_count == 1 || error.faulty_ranks[1] == 4);
          CHECK_IN_MEMBER(wl_comm_status(member.comm, &error) == WL_PEER_LOST);
          return 0;
        },
        {},
        [&](const std::vector<pid_t>& children) {
          usleep(afterUs);
          kill(children[1], SIGKILL);
        });
    ASSERT_EQ((std::vector<int>{0, -SIGKILL, 0}), all.results);
  }
}

TEST_P(OrdinaryMemoryFaultsOfProcesses, APeerThatStandsStillIsNamedByTheDeadline) {
  const Spread spread = {3, 3, 64, 0, GetParam()};
  NEEDS_READING_FOR(spread.use)
  constexpr int64_t kDeadlineNs = (kSlow > 1 ? 900 : 500) * kMs;
  std::mt19937_64 random(seed());
  for (int round = 0; round < (longForm() ? 50 : 2); ++round) {
    // While ranks agree in the first call how they reach one another's memory, and later.
    const bool isFirst = round % 2 == 0;
    const int64_t afterUs = static_cast<int64_t>(random() % (isFirst ? 300 : 50'000));
    const Shared<std::atomic<int>> told;  // ranks that know that one stands still, or were it
    const Members all(
        spread,
        [&](Member& member) {
          Error error;
          int code = WL_OK;
          int64_t start = wl_clock_ns();
          const int64_t first = start;
          std::thread beside([&] {
            if (member.rank == 1) {
              while (wl_clock_ns() - first < afterUs * 1'000) std::this_thread::yield();
              kill(getpid(), SIGSTOP);
            } else {
              // A rank returns once the one that stands still has let go of its memory, too.
              Error seen;
              await([&] { return wl_comm_status(member.comm, &seen) != WL_OK; });
              ++*told;
            }
          });
          while (code == WL_OK && start - first < 60'000 * kMs) {
            start = wl_clock_ns();
            code = reduceOrdinary(member, &error, kDeadlineNs, 400'000 / kSlow);
          }
          if (member.rank == 1) ++*told;
          beside.join();
          CHECK_IN_MEMBER(code == WL_DEADLINE_EXCEEDED);
          CHECK_IN_MEMBER(member.rank == 1 || wl_clock_ns() - start < 15'000 * kMs);
          CHECK_IN_MEMBER(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
          return 0;
        },
        {},
        [&](const std::vector<pid_t>& children) {
          await([&] { return *told >= 2; });
          await([&] {
            kill(children[1], SIGCONT);
            return *told == 3;
          });
        });
    ASSERT_EQ(allWell(spread), all.results) << "stopped after " << afterUs << " us";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OrdinaryMemoryFaultsOfProcesses, testing::Values("readv", "stage"));

TEST(OrdinaryMemoryOfProcesses, EndsTheCallWhereAnInputIsNotThere) {
  const Spread spread = {2, 2, 64, 0, "readv"};
  NEEDS_READING_FOR(spread.use)
  const Members all(spread, [](Member& member) {
    Error error;
    constexpr uint64_t kCount = 100'000;
    std::vector<uint32_t> into(kCount);
    void* gone = mmap(nullptr, 4 * kCount, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4 * kCount);
    // In place, the root itself touches nothing.
    const bool isRoot = member.rank == 1;
    const int code = broadcast(member.comm, isRoot ? gone : nullptr, isRoot ? gone : into.data(),
                               kCount, WL_U32, 1, WL_AUTO, 0, &error);
    CHECK_IN_MEMBER(code == WL_ABORTED);
    CHECK_IN_MEMBER(contains(error.message, "rank 0 can't read what rank 1 names in broadcast"));
    CHECK_IN_MEMBER(contains(error.message, "Bad address; memory that a call names stays mapped"));
    return 0;
  });
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfProcesses, OfOneThatIsBeingEndedIsLostBeforeItsEndShows) {
  const Spread spread = {2, 2, 64, 0, "readv"};
  NEEDS_READING_FOR(spread.use)
  NEEDS_HOLDING
  enum Step { kEnters, kEntered, kHeld };
  const Shared<std::atomic<int>> step;
  const auto isWithin = [start = wl_clock_ns()] { return wl_clock_ns() - start < 60'000 * kMs; };
  const auto awaitStep = [&](int wanted) { return await([&] { return *step >= wanted; }); };
  const Members all(
      spread,
      [&](Member& member) {
        Error error;
        std::vector<uint32_t> data(100'000);
        CHECK_IN_MEMBER(reduceOrdinary(member, &error) == WL_OK);
        const bool isRoot = member.rank == 1;
        wl_rank_state_t root = {};
        root.struct_size = sizeof root;
        while (!isRoot && isWithin() && (root.operation != WL_OP_BROADCAST || root.awaited == -1))
          wl_comm_state(member.comm, 1, &root);
        if (!isRoot) *step = kEntered;
        if (!isRoot) CHECK_IN_MEMBER(awaitStep(kHeld));
        const int code = broadcast(member.comm, isRoot ? data.data() : nullptr, data.data(),
                                   data.size(), WL_U32, 1, WL_AUTO, 0, &error);
        CHECK_IN_MEMBER(code == WL_PEER_LOST);
        CHECK_IN_MEMBER(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
        return 0;
      },
      {},
      [&](const std::vector<pid_t>& children) {
        EXPECT_TRUE(awaitStep(kEntered));
        holdWithoutMemory(children[1]);
        *step = kHeld;
        usleep(20'000);
        letGo(children[1]);
      });
  EXPECT_EQ((std::vector<int>{0, -SIGKILL}), all.results);
}

}  // namespace peer_access_test
}  // namespace windlass_test
