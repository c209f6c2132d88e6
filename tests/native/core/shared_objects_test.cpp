// SPDX-License-Identifier: Apache-2.0
// Windows and split communicators that ranks in processes of their own make together.
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "native/core/control_block.h"
#include "native/core/group.h"
#include "native/core/shared/shared_group.h"
#include "native/memory/shared_mapping.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/forked_rank.h"
#include "tests/native/core/held.h"

namespace windlass_test {
namespace shared_objects_test {

uint32_t elementOf(int round, int rank, uint64_t i) {
  return static_cast<uint32_t>(round * 1'000'003 + rank * 10'007 + i);
}

uint32_t* at(wl_window_t* window, int rank) {
  return static_cast<uint32_t*>(wl_window_address(window, rank));
}

// All-gathers `count` elements of each rank in the window, and looks at every one.
int gatherIn(wl_window_t* window, wl_comm_t* comm, int round, uint64_t count) {
  Error error;
  const int size = wl_comm_size(comm);
  const int rank = wl_comm_rank(comm);
  uint32_t* in = at(window, rank);
  uint32_t* out = in + count;
  for (uint64_t i = 0; i < count; ++i) in[i] = elementOf(round, rank, i);
  CHECK_IN_CHILD(allGather(comm, in, out, count, WL_U32, 0, &error) == WL_OK);
  for (int from = 0; from < size; ++from)
    for (uint64_t i = 0; i < count; ++i)
      CHECK_IN_CHILD(out[from * count + i] == elementOf(round, from, i));
  return 0;
}

TEST(SharedObjects, WindowsComeAndGo) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    const Held before = Held::look();
    std::mt19937 random(7);
    std::vector<wl_window_t*> windows;
    for (int round = 0; round < 200; ++round) {
      const uint64_t count = 1 + random() % 5'000;
      wl_window_t* window = nullptr;
      CHECK_IN_CHILD(wl_window_create(forked.comm, 4 * count * (kRanks + 1), 0, &window, &error) ==
                     WL_OK);
      CHECK_IN_CHILD(wl_window_bytes(window) == 4 * count * (kRanks + 1));
      CHECK_IN_CHILD(gatherIn(window, forked.comm, round, count) == 0);
      windows.push_back(window);
      // A random window, the same on all ranks. It may have existed for a long time.
      wl_window_t* other = windows[random() % windows.size()];
      const uint64_t least = wl_window_bytes(other) / 4 / (kRanks + 1);
      CHECK_IN_CHILD(gatherIn(other, forked.comm, -round, least) == 0);
      while (windows.size() > random() % 20) {
        const size_t gone = random() % windows.size();
        // Not all at the same time.
        if (static_cast<int>(random() % kRanks) == forked.rank) usleep(200);
        wl_window_free(windows[gone]);
        windows.erase(windows.begin() + static_cast<int64_t>(gone));
      }
    }
    for (wl_window_t* window : windows) wl_window_free(window);
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    CHECK_IN_CHILD(await([&] { return Held::look().mappings == before.mappings; }));
    // Fewer where a peer has ended, which is watched no more.
    CHECK_IN_CHILD(Held::look().files <= before.files);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(SharedObjects, AWindowLastsUntilItsLastRankHasDroppedIt) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    wl_window_t* window = nullptr;
    CHECK_IN_CHILD(wl_window_create(forked.comm, 1 << 20, 0, &window, &error) == WL_OK);
    uint32_t* own = at(window, forked.rank);
    // The others drop it, and move from their first window to it.
    if (forked.rank != 2) wl_window_free(window);
    for (int round = 0; round < 300; ++round) {
      uint32_t* in = forked.segment(forked.rank);
      uint32_t* out = forked.rank == 2 ? own : in + 40'000;
      for (uint64_t i = 0; i < 10'000; ++i) in[i] = elementOf(round, forked.rank, i);
      CHECK_IN_CHILD(allGather(forked.comm, in, out, 10'000, WL_U32, 0, &error) == WL_OK);
      for (int from = 0; from < kRanks; ++from)
        CHECK_IN_CHILD(out[from * 10'000 + 9'999] == elementOf(round, from, 9'999));
      if (round == 150) usleep(250'000);
    }
    if (forked.rank == 2) wl_window_free(window);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(SharedObjects, ThereAreAsManyWindowsAsThereAreNumbers) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    std::vector<wl_window_t*> windows;
    int32_t code = WL_OK;
    while (code == WL_OK && windows.size() < 100) {
      wl_window_t* window = nullptr;
      code = wl_window_create(forked.comm, 64, 0, &window, &error);
      if (code == WL_OK) windows.push_back(window);
    }
    CHECK_IN_CHILD(code == WL_RESOURCE && contains(error.message, "close one"));
    // The address space, the control block and the test's own are the others.
    CHECK_IN_CHILD(windows.size() == windlass::kMostWindows - 3);
    for (wl_window_t* window : windows) wl_window_free(window);
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    wl_window_t* window = nullptr;
    CHECK_IN_CHILD(wl_window_create(forked.comm, 4'096, 0, &window, &error) == WL_OK);
    CHECK_IN_CHILD(gatherIn(window, forked.comm, 1, 100) == 0);
    wl_window_free(window);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(SharedObjects, TooLargeAWindowIsAnErrorOfAllAndOfNothingElse) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    wl_window_t* window = nullptr;
    CHECK_IN_CHILD(wl_window_create(forked.comm, uint64_t{1} << 44, 0, &window, &error) ==
                   WL_RESOURCE);
    CHECK_IN_CHILD(window == nullptr);
    CHECK_IN_CHILD(contains(error.message, "are free, says"));
    CHECK_IN_CHILD(wl_window_create(forked.comm, uint64_t{1} << 62, 0, &window, &error) ==
                   WL_RESOURCE);
    CHECK_IN_CHILD(wl_window_create(forked.comm, 4'096, 0, &window, &error) == WL_OK);
    CHECK_IN_CHILD(gatherIn(window, forked.comm, 2, 100) == 0);
    wl_window_free(window);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(SharedObjects, PartsOfACommunicatorStartAndMove) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    const int files = Held::look().files;
    for (int round = 0; round < 30; ++round) {
      // Every second round one rank stays out.
      const int32_t color = forked.rank == round % kRanks && round % 2 == 0 ? -1 : 0;
      wl_comm_t* part = nullptr;
      CHECK_IN_CHILD(wl_comm_split(forked.comm, color, -forked.rank, 0, &part, &error) == WL_OK);
      CHECK_IN_CHILD((part == nullptr) == (color < 0));
      if (part != nullptr) {
        const int size = round % 2 == 0 ? kRanks - 1 : kRanks;
        CHECK_IN_CHILD(wl_comm_size(part) == size);
        if (size == kRanks) CHECK_IN_CHILD(wl_comm_rank(part) == kRanks - 1 - forked.rank);
        wl_window_t* window = nullptr;
        CHECK_IN_CHILD(wl_window_create(part, 1 << 16, 0, &window, &error) == WL_OK);
        CHECK_IN_CHILD(gatherIn(window, part, round, 2'000) == 0);
        wl_comm_t* again = nullptr;
        CHECK_IN_CHILD(wl_comm_split(part, wl_comm_rank(part) % 2, 0, 0, &again, &error) == WL_OK);
        CHECK_IN_CHILD(callBarrier(again, 0, &error) == WL_OK);
        wl_comm_free(again);
        wl_window_free(window);
        wl_comm_free(part);
      }
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    // Fewer where a peer has ended, which is watched no more.
    CHECK_IN_CHILD(Held::look().files <= files);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(SharedObjects, ADeathEndsThePartThatTheRankIsOf) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    wl_comm_t* part = nullptr;
    const int32_t listed[] = {2, 1};
    CHECK_IN_CHILD(wl_comm_subgroup(forked.comm, listed, 2, 0, &part, &error) == WL_OK);
    if (forked.rank == 1) raise(SIGKILL);
    if (forked.rank == 2) {
      CHECK_IN_CHILD(callBarrier(part, 0, &error) == WL_PEER_LOST);
      CHECK_IN_CHILD(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
      wl_comm_free(part);
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -SIGKILL, 0}), results);
}

// Killed at any moment of what makes windows and parts, by chance.
TEST(SharedObjects, ADeathWhileTheyAreMadeIsNamedAndLeavesNothing) {
  const int attempts = repetitions(4, 50);
  std::mt19937 random(static_cast<unsigned>(wl_clock_ns()));
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int victim = static_cast<int>(random() % kRanks);
    const useconds_t moment = random() % (kSlow > 1 ? 200'000 : 20'000);
    const Shared<std::atomic<int>> begun;
    const std::vector<int> results = inProcesses(
        0,
        [&](ForkedRank& forked) {
          Error error;
          const int files = Held::look().files;
          int32_t code = WL_OK;
          ++*begun;
          for (int round = 0; code == WL_OK; ++round) {
            wl_window_t* window = nullptr;
            wl_memory_pool_t* pool = nullptr;
            wl_comm_t* part = nullptr;
            code = wl_window_create(forked.comm, 1 << 14, 0, &window, &error);
            if (code == WL_OK)
              code = wl_memory_pool_create(forked.comm, 1 << 14, 0, &pool, &error);
            if (code == WL_OK) code = wl_comm_split(forked.comm, 0, 0, 0, &part, &error);
            if (code == WL_OK) code = callBarrier(part, 0, &error);
            wl_window_free(window);
            wl_memory_pool_free(pool);
            wl_comm_free(part);
          }
          if (code != WL_PEER_LOST && code != WL_ABORTED)
            std::fprintf(stderr, "%d: %s\n", code, error.message);
          CHECK_IN_CHILD(code == WL_PEER_LOST || code == WL_ABORTED);
          CHECK_IN_CHILD(error.faulty_rank_count > 0);
          CHECK_IN_CHILD(code == WL_ABORTED || error.faulty_ranks[0] == victim);
          CHECK_IN_CHILD(Held::look().files <= files);
          return 0;
        },
        [&](const std::vector<pid_t>& children) {
          for (const int64_t start = wl_clock_ns();
               *begun < kRanks && wl_clock_ns() - start < 60'000 * kMs;)
            usleep(100);
          usleep(moment);
          kill(children[static_cast<size_t>(victim)], SIGKILL);
        });
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(rank == victim ? -SIGKILL : 0, results[static_cast<size_t>(rank)])
          << "victim " << victim << " after " << moment << " us";
  }
}

TEST(SharedObjects, WhatAnotherProcessSharesIsOpenedByItsNumber) {
  Error error;
  int32_t shared = -1;
  const wl_group_config_t config = configOf(2);
  ASSERT_EQ(WL_OK, wl_group_share(&config, &shared, &error)) << error.message;
  const wl_process_t owner = self();
  int32_t opened = -1;
  ASSERT_EQ(WL_OK, wl_file_open(&owner, shared, &opened, &error)) << error.message;
  EXPECT_NE(0u, wl_file_inode(shared));
  EXPECT_EQ(wl_file_inode(shared), wl_file_inode(opened));
  EXPECT_EQ(0u, wl_file_inode(100'000));
  wl_group_t* group = nullptr;
  EXPECT_EQ(WL_OK, wl_group_attach(opened, &group, &error)) << error.message;
  wl_group_release(group);
  wl_file_close(opened);
  opened = 7;

  EXPECT_EQ(WL_RESOURCE, wl_file_open(&owner, 100'000, &opened, &error));
  EXPECT_TRUE(contains(error.message, "run as one user")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_file_open(&owner, -1, &opened, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_file_open(nullptr, shared, &opened, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_file_open(&owner, shared, nullptr, &error));
  wl_process_t other = owner;
  other.pid_namespace ^= 1;
  EXPECT_EQ(WL_UNSUPPORTED, wl_file_open(&other, shared, &opened, &error));
  EXPECT_TRUE(contains(error.message, "pid namespace")) << error.message;
  other = owner;
  other.started += 1'000'000;
  EXPECT_EQ(WL_PEER_LOST, wl_file_open(&other, shared, &opened, &error));
  EXPECT_EQ(-1, opened);
  wl_file_close(shared);
}

// As of two rootless containers, whose user is the same.
TEST(SharedObjects, WhoIsInAnotherUserNamespaceIsToldTheWayOut) {
  struct Board {
    std::atomic<int> entered;  // processes, once they are in a namespace of their own, or not
    std::atomic<int> refused;
    std::atomic<bool> isShared;
    std::atomic<bool> isOver;
    wl_process_t owner;
    int32_t file;
  };
  const Shared<Board> board;
  Forks forks(2, [&](int process) {
    if (unshare(CLONE_NEWUSER) != 0) ++board->refused;
    ++board->entered;
    CHECK_IN_CHILD(await([&] { return board->entered == 2; }));
    if (board->refused != 0) return 0;
    Error error;
    if (process == 0) {
      const wl_group_config_t config = configOf(2);
      CHECK_IN_CHILD(wl_group_share(&config, &board->file, &error) == WL_OK);
      board->owner = self();
      board->isShared = true;
      CHECK_IN_CHILD(await([&] { return board->isOver.load(); }));
      return 0;
    }
    CHECK_IN_CHILD(await([&] { return board->isShared.load(); }));
    int32_t opened = -1;
    const int32_t code = wl_file_open(&board->owner, board->file, &opened, &error);
    board->isOver = true;
    CHECK_IN_CHILD(code == WL_RESOURCE);
    CHECK_IN_CHILD(contains(error.message, "in several user namespaces"));
    CHECK_IN_CHILD(contains(error.message, "give the processes of each another WINDLASS_HOST"));
    return 0;
  });
  EXPECT_EQ(std::vector<int>(2, 0), forks.wait());
  if (board->refused != 0)
    GTEST_SKIP() << "the kernel makes no user namespaces here, as sysctl user.max_user_namespaces "
                    "above 0 and an unconfined container have it do";
}

TEST(SharedObjects, AFileThatWasClosedIsNotTakenForALaterOneOfItsNumber) {
  Error error;
  windlass::SharedFile first;
  {
    windlass::SharedMapping made;
    ASSERT_EQ(WL_OK, made.make(4096, &error)) << error.message;
    first = made.named();
    windlass::SharedMapping seen;
    EXPECT_EQ(WL_OK, seen.map(self(), first, &error)) << error.message;
  }
  windlass::SharedMapping later;
  ASSERT_EQ(WL_OK, later.make(4096, &error)) << error.message;
  ASSERT_EQ(first.number, later.named().number) << "the least that is free";
  windlass::SharedMapping seen;
  EXPECT_EQ(WL_RESOURCE, seen.map(self(), first, &error));
  EXPECT_TRUE(contains(error.message, "has other memory there")) << error.message;
  EXPECT_EQ(nullptr, seen.memory());
}

TEST(SharedObjects, NoMoreRanksAreClaimedThanThereAre) {
  windlass::GroupConfig two;
  two.ranks = 2;
  const std::shared_ptr<windlass::Group> group = windlass::Group::create(two);
  Error error;
  EXPECT_EQ(WL_INVALID_ARGUMENT, group->claim(2, &error));
  EXPECT_TRUE(contains(error.message, "rank 2 is not in 0 to 1")) << error.message;
  EXPECT_EQ(WL_OK, group->claim(1, &error)) << error.message;
}

// The library checks memory of other processes before it names ranks by it.
TEST(SharedObjects, WhatIsNoPartOfACommunicatorIsNotTakenForOne) {
  Error error;
  windlass::GroupConfig config;
  config.ranks = 2;
  config.spansProcesses = true;
  const uint64_t bytes = windlass::ControlBlock::bytes(config);
  windlass::SharedMapping memory;
  ASSERT_EQ(WL_OK, memory.make(bytes, &error)) << error.message;
  windlass::ControlBlock::make(memory.memory(), config);
  const std::shared_ptr<windlass::Group> whole =
      windlass::Group::attach(memory.memory(), nullptr, windlass::PeerMemoryUse::kAuto);
  ASSERT_EQ(WL_OK, whole->claim(0, &error)) << error.message;
  ASSERT_EQ(WL_OK, whole->claim(1, &error)) << error.message;
  const uint64_t id = whole->shared().id;
  const auto attach = [&](uint32_t first, uint32_t second, uint64_t parent) {
    const uint32_t former[] = {first, second};
    windlass::SharedGroup part;
    if (part.mapping().make(bytes, &error) != WL_OK) std::abort();
    windlass::ControlBlock::make(part.mapping().memory(), config, former, parent);
    return static_cast<int>(part.attach(*whole, &error));
  };
  EXPECT_EQ(WL_OK, attach(1, 0, id)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, attach(1, 2, id));
  EXPECT_TRUE(contains(error.message, "holds no part of this communicator")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, attach(~0u, 0, id));
  EXPECT_EQ(WL_INVALID_ARGUMENT, attach(0, 1, id + 1));
}

// The files of a process that is killed are closed before its end shows: what they held is freed in
// between.
TEST(SharedObjects, AProcessThatIsKilledHasEndedAndDoesNotLackItsFile) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    int named[2] = {};
    ASSERT_EQ(0, pipe(named));
    const pid_t child = fork();
    if (child == 0) {
      const wl_process_t own = self();
      const int large = memfd_create("large", 0);
      if (fallocate(large, 0, 0, 64 << 20) == 0 && write(named[1], &own, sizeof own) == sizeof own)
        pause();
      _exit(0);
    }
    wl_process_t owner = {};
    ASSERT_EQ(static_cast<ssize_t>(sizeof owner), read(named[0], &owner, sizeof owner));
    ASSERT_EQ(0, kill(child, SIGKILL));
    Error error;
    int32_t code = WL_OK;
    for (int32_t opened = -1; code == WL_OK; wl_file_close(opened))
      code = wl_file_open(&owner, named[0], &opened, &error);
    EXPECT_EQ(WL_PEER_LOST, code) << error.message;
    EXPECT_EQ(child, waitpid(child, nullptr, 0));
    close(named[0]);
    close(named[1]);
  }
}

// The thread that unmaps windows looks for dead processes first, and blocks no other thread
// meanwhile.
TEST(SharedObjects, ADeathShowsBeforeWindowsAreUnmapped) {
  std::atomic<bool> isUnmapping{false};
  std::atomic<bool> mayUnmap{false};
  std::atomic<int> shown{-1};
  Error error;
  int32_t file = -1;
  const wl_group_config_t config = configOf(2);
  ASSERT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
  windlass::SharedMapping block;
  ASSERT_EQ(WL_OK, block.map(file, &error)) << error.message;
  const std::shared_ptr<windlass::Group> group =
      windlass::Group::attach(block.memory(), nullptr, windlass::PeerMemoryUse::kAuto);
  ASSERT_EQ(WL_OK, group->claim(0, &error)) << error.message;

  int named[2] = {};
  ASSERT_EQ(0, pipe(named));
  const pid_t child = fork();
  if (child == 0) {
    const wl_process_t own = self();
    if (write(named[1], &own, sizeof own) == sizeof own) pause();
    _exit(0);
  }
  wl_process_t peer = {};
  ASSERT_EQ(static_cast<ssize_t>(sizeof peer), read(named[0], &peer, sizeof peer));
  ASSERT_EQ(WL_OK, group->watch(peer, {1}, 0, &error)) << error.message;

  // One that is being unmapped while the child dies, and another is dropped.
  const auto hold = [&](auto&& unmap) {
    const uint32_t number = group->takeWindow();
    group->windows().hold(number, std::shared_ptr<void>(&block, unmap), &block, 1, 1);
    return number;
  };
  const auto drop = [&](uint32_t number) {
    group->dropWindow(number);
    group->dropWindow(number);
  };
  const uint32_t first = hold([&](void*) {
    isUnmapping = true;
    await([&] { return mayUnmap.load(); });
  });
  const uint32_t second = hold([&](void*) { shown = group->failure() != nullptr; });
  drop(first);
  EXPECT_TRUE(await([&] { return isUnmapping.load(); }));
  std::atomic<bool> isFree{false};
  std::thread other([&] { isFree = group->isHere(0); });
  EXPECT_TRUE(await([&] { return isFree.load(); }));
  drop(second);
  kill(child, SIGKILL);
  EXPECT_EQ(child, waitpid(child, nullptr, 0));
  mayUnmap = true;
  EXPECT_TRUE(await([&] { return shown >= 0; }));
  EXPECT_EQ(1, shown);
  other.join();
  close(named[0]);
  close(named[1]);
  wl_file_close(file);
}

// It lives as long as its other thread does, and nobody is to wait for that.
TEST(SharedObjects, AProcessWhoseFirstThreadHasEndedIsNotWaitedFor) {
  int named[2] = {};
  ASSERT_EQ(0, pipe(named));
  const pid_t child = fork();
  if (child == 0) {
    const wl_process_t own = self();
    std::thread([] { pause(); }).detach();
    if (write(named[1], &own, sizeof own) == sizeof own) syscall(SYS_exit, 0);
    _exit(1);
  }
  wl_process_t owner = {};
  ASSERT_EQ(static_cast<ssize_t>(sizeof owner), read(named[0], &owner, sizeof owner));
  Error error;
  int32_t code = WL_OK;
  int64_t longest = 0;
  const int64_t start = wl_clock_ns();
  while (code == WL_OK && wl_clock_ns() - start < 20'000 * kMs) {
    const int64_t before = wl_clock_ns();
    int32_t opened = -1;
    code = wl_file_open(&owner, named[0], &opened, &error);
    longest = wl_clock_ns() - before;
    wl_file_close(opened);
  }
  EXPECT_EQ(WL_PEER_LOST, code);
  EXPECT_TRUE(contains(error.message, "or its first thread has ended"));
  EXPECT_LT(longest, 30'000 * kMs);
  kill(child, SIGKILL);
  EXPECT_EQ(child, waitpid(child, nullptr, 0));
  close(named[0]);
  close(named[1]);
}

}  // namespace shared_objects_test
}  // namespace windlass_test
