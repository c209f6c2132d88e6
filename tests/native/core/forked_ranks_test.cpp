// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own, which start by the C ABI alone, and what the others learn of one
// that dies, stops or closes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "native/abi/handles.h"
#include "native/memory/shared_memory.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/forked_rank.h"

namespace windlass_test {
namespace forked_ranks_test {

TEST(ForkedRanks, StartByTheCAbiAndMoveWhatLiesInWindows) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    constexpr uint64_t kCount = 5'000;
    uint32_t* own = forked.segment(forked.rank);
    for (int round = 0; round < 20; ++round) {
      for (uint64_t i = 0; i < kCount; ++i)
        own[i] = static_cast<uint32_t>(round * 1'000'000 + forked.rank * 100'000 + i);
      uint32_t* out = own + kCount;
      CHECK_IN_CHILD(allGather(forked.comm, own, out, kCount, WL_U32, 0, &error) == WL_OK);
      for (int from = 0; from < kRanks; ++from) {
        for (uint64_t i = 0; i < kCount; ++i) {
          CHECK_IN_CHILD(out[from * kCount + i] ==
                         static_cast<uint32_t>(round * 1'000'000 + from * 100'000 + i));
        }
      }
    }
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

// A rank that has closed is missed by nobody, whatever becomes of its process.
TEST(ForkedRanks, EndAfterTheyHaveClosedWithoutHarmToOthers) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    if (forked.rank == 1) {
      CHECK_IN_CHILD(wl_comm_close(forked.comm, &error) == WL_OK);
      return 0;
    }
    usleep(200'000);
    CHECK_IN_CHILD(wl_comm_status(forked.comm, &error) == WL_OK);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(ForkedRanks, ADeathEndsEveryWaitAtOnceAndNamesTheRank) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    auto* died = reinterpret_cast<std::atomic<int64_t>*>(forked.segment(0));
    auto* pid = reinterpret_cast<pid_t*>(forked.segment(1));
    if (forked.rank == 1) *pid = getpid();
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    if (forked.rank == 1) {
      usleep(50'000);
      *died = wl_clock_ns();
      raise(SIGKILL);
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
    const int64_t tookNs = wl_clock_ns() - *died;
    CHECK_IN_CHILD(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
    char host[65] = {};
    CHECK_IN_CHILD(gethostname(host, sizeof host - 1) == 0);
    const std::string expected =
        "process " + std::to_string(*pid) + " on " + host +
        " has ended: rank 1 is lost: it finished barrier #4294967";
    CHECK_IN_CHILD(contains(error.message, expected));
    // The error names the operations of the live ranks and the ranks for which they wait.
    CHECK_IN_CHILD(contains(error.message, "it is in barrier #4294967"));
    CHECK_IN_CHILD(contains(error.message, "and waits for "));
    CHECK_IN_CHILD(error.operation == WL_OP_BARRIER && error.observer % 2 == 0);
    // Some ms on an idle machine; what looks now and then alone would take the deadline's 20 s.
    CHECK_IN_CHILD(tookNs < 15'000 * kMs);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -SIGKILL, 0}), results);
}

// Nobody waits for the memory of an operation in which only the dead are.
TEST(ForkedRanks, TheDeadTouchNothingAnyMore) {
  const std::vector<int> results = inProcesses(0, [&](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    if (forked.rank == 1) {
      std::thread killer([] {
        usleep(50'000);
        raise(SIGKILL);
      });
      callBarrier(forked.comm, 0, &error);
      killer.join();
    }
    const int64_t start = wl_clock_ns();
    while (wl_comm_status(forked.comm, &error) == WL_OK && wl_clock_ns() - start < 10'000 * kMs)
      usleep(100);
    CHECK_IN_CHILD(error.code == WL_PEER_LOST);
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    CHECK_IN_CHILD(wl_comm_state(forked.comm, 1, &state) == WL_OK && state.busy == 1);
    CHECK_IN_CHILD(wl_comm_quiescent(forked.comm) == 1);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -SIGKILL, 0}), results);
}

TEST(ForkedRanks, AStoppedProcessIsSilentAndNamed) {
  const std::vector<int> results = inProcesses(
      1'000 * kMs,
      [](ForkedRank& forked) {
        Error error;
        CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
        if (forked.rank == 2) raise(SIGSTOP);
        CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
        CHECK_IN_CHILD(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 2);
        CHECK_IN_CHILD(std::strstr(error.message, "is silent since 1") != nullptr);
        return 0;
      },
      [](const std::vector<pid_t>& children) {
        int status = 0;
        waitpid(children[2], &status, WUNTRACED);
        // Once the others have seen it, it learns it as well.
        for (const int rank : {0, 1}) EXPECT_TRUE(awaitEnd(children[static_cast<size_t>(rank)]));
        kill(children[2], SIGCONT);
      });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(ForkedRanks, AProcessThatEndedBeforeItWasWatchedIsLostAtOnce) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  wl_process_t process = self();
  const uint64_t own = process.started;
  process.pid = child;
  const ForkedGroup all(configOf(kRanks), kRanks);
  wl_group_t* group = all.attach();
  wl_comm_t* comm = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 0, &comm, &error)) << error.message;
  const int32_t rank = 2;
  // A process with that number, started at another time: the number went to another process.
  process.started = own + 1'000'000;
  ASSERT_EQ(WL_OK, wl_group_watch(group, &process, &rank, 1, 0, &error)) << error.message;
  EXPECT_EQ(WL_PEER_LOST, wl_comm_status(comm, &error));
  EXPECT_EQ(2, error.faulty_ranks[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  wl_comm_free(comm);
  wl_group_release(group);
}

// Their records stay as they are, half written.
TEST(ForkedRanks, ThatDieInWritingARecordLeaveOthersTheirs) {
  windlass::GroupConfig config;
  config.ranks = 2;
  const std::shared_ptr<windlass::Group> group = windlass::Group::create(config);
  group->shared().failing = 3;
  group->publishFailure(windlass::errorOf(WL_ABORTED, "the first"));
  ASSERT_NE(nullptr, group->failure());
  EXPECT_STREQ("the first", group->failure()->message);
  group->publishFailure(windlass::errorOf(WL_ABORTED, "the second"));
  EXPECT_STREQ("the first", group->failure()->message);

  const std::shared_ptr<windlass::Group> all = windlass::Group::create(config);
  all->shared().failing = windlass::kFailureRecords - 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      all->publishFailure(windlass::errorOf(WL_ABORTED, "one of many"));
      ASSERT_NE(nullptr, all->failure());
      EXPECT_TRUE(contains(all->failure()->message, "while they wrote why"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Where its record crosses into a page that it may not write, its process dies half way through.
TEST(ForkedRanks, ADeathHalfWayThroughARecordLeavesItToTheNextObserver) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    windlass::Group& group = forked.comm->comm.group();
    windlass::SharedLines& shared = group.shared();
    if (forked.rank == 1) {
      uint32_t crosses = 0;
      const auto page = [](const void* at) { return reinterpret_cast<uintptr_t>(at) / 4096; };
      const auto isAcross = [&](const wl_error_t& record) {
        return page(&record) == page(&shared) && page(&record.message[1'000]) != page(&shared);
      };
      while (!isAcross(shared.records[crosses])) ++crosses;
      // Pretend that other processes died in the earlier records.
      shared.failing = crosses;
      // Not a sanitizer's to report.
      signal(SIGSEGV, SIG_DFL);
      auto* next = reinterpret_cast<unsigned char*>(&shared) + 4096;
      CHECK_IN_CHILD(mprotect(next, 4096, PROT_READ) == 0);
      wl_comm_abort(forked.comm, "never told", &error);
      return 0;
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
    CHECK_IN_CHILD(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
    CHECK_IN_CHILD(contains(error.message, "rank 1 is lost"));
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -SIGSEGV, 0}), results);
}

// One more file than the limit allows: nobody is taken for dead, and later the watch works.
TEST(ForkedRanks, AreNotLostWhereTheyCannotBeLookedAt) {
  const ForkedGroup all(configOf(kRanks), kRanks);
  wl_group_t* group = all.attach();
  wl_comm_t* comm = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 0, &comm, &error)) << error.message;
  const wl_process_t process = self();
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = dup(0);
  close(next);
  const int32_t ranks[] = {1, 2};
  for (const int free : {0, 1, 2, 3}) {
    const rlimit few = {static_cast<rlim_t>(next + free), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const int32_t code = wl_group_watch(group, &process, ranks, 1, 0, &error);
    setrlimit(RLIMIT_NOFILE, &before);
    // A process that sees the namespace needs no file of its own.
    EXPECT_EQ(WL_RESOURCE, code) << free << " free: " << error.message;
  }
  EXPECT_EQ(WL_OK, wl_group_watch(group, &process, ranks, 1, 0, &error)) << error.message;
  EXPECT_EQ(WL_OK, wl_comm_status(comm, &error)) << error.message;
  wl_comm_free(comm);
  wl_group_release(group);
}

// Two processes, as far as the group can tell.
TEST(ForkedRanks, JoinOnce) {
  const ForkedGroup all(configOf(kRanks), kRanks);
  wl_group_t* group = all.attach();
  wl_comm_t* comm = nullptr;
  wl_comm_t* again = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 1, &comm, &error)) << error.message;
  wl_group_t* other = all.attach();
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(other, 1, &again, &error));
  EXPECT_TRUE(contains(error.message, "rank 1 joined already"));
  // The second may not join after the first is gone either: peers would take its words for those of
  // the first.
  wl_comm_free(comm);
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(other, 1, &again, &error));
  for (wl_group_t* each : {group, other}) wl_group_release(each);
}

TEST(ForkedRanks, PublishWhatOnlyTheySee) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    if (forked.rank == 0) {
      const int32_t faultyRanks[] = {1, 2};
      CHECK_IN_CHILD(wl_group_fail(forked.own.group, WL_PEER_LOST, faultyRanks, 2,
                                   "host b is silent", &error) == WL_OK);
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
    CHECK_IN_CHILD(error.faulty_rank_count == 2 && error.faulty_ranks[1] == 2);
    CHECK_IN_CHILD(std::strstr(error.message, "host b is silent") != nullptr);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(ForkedRanks, AreToldWhatTheyGotWrong) {
  Error error;
  int32_t file = -1;
  EXPECT_EQ(WL_RESOURCE, windlass::shareMemory(uint64_t{1} << 45, &file, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "35184372088832 bytes")) << error.message;
  EXPECT_NE(nullptr, std::strstr(error.message, "are free, says ")) << error.message;
  EXPECT_EQ(-1, file);
  EXPECT_EQ(WL_RESOURCE, windlass::reserveShared(nullptr, uint64_t{1} << 45, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "are free, says ")) << error.message;

  wl_group_t* group = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(-1, &group, &error));
  EXPECT_TRUE(contains(error.message, "file -1 is not open")) << error.message;
  const int shrinking = memfd_create("windlass-test", MFD_CLOEXEC);
  ASSERT_EQ(0, ftruncate(shrinking, 4096));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(shrinking, &group, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "may shrink")) << error.message;
  close(shrinking);
  // Memory of too few bytes, or with nothing in it.
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{1} << 20}) {
    ASSERT_EQ(WL_OK, windlass::shareMemory(bytes, &file, &error)) << error.message;
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(file, &group, &error));
    wl_file_close(file);
  }
  EXPECT_NE(nullptr, std::strstr(error.message, "with the same version")) << error.message;
  EXPECT_EQ(nullptr, group);
  wl_group_config_t config = configOf(4);
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_share(nullptr, &file, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_share(&config, nullptr, &error));
  ASSERT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
  EXPECT_NE(0, ftruncate(file, 0)) << "what peers map never shrinks";
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(file, nullptr, &error));
  ASSERT_EQ(WL_OK, wl_group_attach(file, &group, &error)) << error.message;
  wl_process_t other = self();
  const int32_t ranks[] = {1, 4};
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &other, ranks, 2, 0, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "ranks[1] is 4, not 0 to 3")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &other, ranks, 1, 1000, &error));
  wl_process_t unfilled = {};
  unfilled.struct_size = sizeof unfilled;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &unfilled, ranks, 1, 0, &error));
  EXPECT_TRUE(contains(error.message, "process->pid is 0")) << error.message;
  other.pid_namespace += 1;
  EXPECT_EQ(WL_UNSUPPORTED, wl_group_watch(group, &other, ranks, 1, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_fail(group, WL_OK, ranks, 1, "nothing", &error));
  wl_group_release(group);
  wl_file_close(file);

  config = configOf(2);
  ASSERT_EQ(WL_OK, wl_group_create(&config, &group, &error)) << error.message;
  const wl_process_t own = self();
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &own, ranks, 1, 0, &error));
  wl_group_release(group);
}

}  // namespace forked_ranks_test
}  // namespace windlass_test
