// SPDX-License-Identifier: Apache-2.0
// Items of kernels that are made for these tests: what a rank may look at before it claims one, and
// whom a DeadlineExceeded names.
#include <sched.h>

#include "native/core/collectives.h"
#include "native/core/executor/cpu_executor.h"
#include "native/core/launch/kernels.h"
#include "tests/native/core/comms.h"

namespace windlass_test {
namespace items_test {

using windlass::Call;
using windlass::Code;
using windlass::Comm;
using windlass::Descriptor;
using windlass::kEveryRank;
using windlass::kNobody;
using windlass::Launch;
using windlass::runOnCpu;

thread_local uint32_t self = 0;

void sleepUntil(const std::function<bool()>& ready, int64_t limitNs) {
  const int64_t start = wl_clock_ns();
  while (!ready() && wl_clock_ns() - start < limitNs)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

// One item a rank, of nothing.
struct OneItem {
  static constexpr bool kEager = false;
  static uint32_t phases(const Launch&) { return 1; }
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kNobody; }
  static void phase(const Launch&, uint32_t, uint32_t, uint32_t) {}
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

Call callOf(uint64_t workBytes, wl_error_t* error) {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_TRANSFER, 1);
  call.workBytes = workBytes;
  call.error = error;
  return call;
}

// ---- an aux that its owner frees as soon as it returns ------------------------------------------

// Whoever asks how many items a peer has is held until that peer has left, or a while if it stays.
struct HeldLook : OneItem {
  struct Aux {
    std::atomic<bool> freed{false};
    std::atomic<bool> looked{false};
  };
  static Aux& auxOf(const Launch& launch, uint32_t rank) {
    return *launch.at<Aux>(rank, launch.of(rank).aux);
  }
  static uint32_t blocks(const Launch& launch, uint32_t rank) {
    Aux& aux = auxOf(launch, rank);
    if (self != rank) {
      aux.looked = true;
      sleepUntil([&] { return aux.freed.load(); }, 100 * kMs);
    }
    EXPECT_FALSE(aux.freed) << "rank " << self << " reads the aux of rank " << rank;
    return 1;
  }
  // Stays inside until a peer looks.
  static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    Aux& aux = auxOf(launch, rank);
    if (self == rank) sleepUntil([&] { return aux.looked.load(); }, 30 * kMs);
  }
};

TEST(Items, APeersAuxIsReadWhileThatPeerIsInsideAlone) {
  for (const uint32_t cores : {1u, 64u}) {
    for (const uint32_t n : {2u, 3u}) {
      Comms ranks(n, cores);
      std::vector<HeldLook::Aux> auxes(n);
      ranks.run([&](uint32_t rank, Comm& comm) {
        self = rank;
        Error error;
        Call call = callOf(windlass::kSharedWorkBytes, &error);
        call.args.aux = &auxes[rank];
        EXPECT_EQ(WL_OK, runOnCpu<HeldLook>(comm, call)) << error.message;
        auxes[rank].freed = true;
      });
    }
  }
}

// ---- what says whether items run ----------------------------------------------------------------

// Rank 1 has begun the operation, and enters once rank 0 has returned.
struct AsksLate : OneItem {
  static std::atomic<bool> returned;
  static std::atomic<int> ran;
  static bool agrees(const Launch&) { return true; }
  static void plan(Launch& launch) {
    launch.cut(1, 1);
    if (self == 1) sleepUntil([] { return returned.load(); }, 5'000 * kMs);
  }
  static void phase(const Launch&, uint32_t, uint32_t, uint32_t) { ++ran; }
};
std::atomic<bool> AsksLate::returned{false};
std::atomic<int> AsksLate::ran{0};

TEST(Items, ThatAskRunNoMoreOnceARankHasFailedBeforeAllHadCome) {
  for (const uint32_t cores : {1u, 64u}) {
    for (const uint64_t workBytes : {uint64_t{1}, windlass::kSharedWorkBytes}) {
      AsksLate::returned = false;
      AsksLate::ran = 0;
      Comms ranks(2, cores, 1, 30 * kMs);
      ranks.run([&](uint32_t rank, Comm& comm) {
        self = rank;
        Error error;
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, runOnCpu<AsksLate>(comm, callOf(workBytes, &error)));
        if (rank == 0) AsksLate::returned = true;
      });
      EXPECT_EQ(0, AsksLate::ran);
    }
  }
}

// ---- whom a rank takes for a foreign thread -----------------------------------------------------

// Rank 1 has the core for more than a time slice, in an item that no other rank can claim.
struct LongOwnItem : OneItem {
  static constexpr bool kOfLibrary = true;
  static void phase(const Launch&, uint32_t rank, uint32_t, uint32_t) {
    const int64_t start = wl_clock_ns();
    while (rank == 1 && wl_clock_ns() - start < 15 * kMs) {
    }
  }
};

TEST(Items, ARankThatRunsItsOwnIsNoForeignThreadOnTheCore) {
  constexpr uint32_t kOperations = 30;
  Comms ranks(2, 1);
  Launch launch = {};
  launch.ranks = 2;
  launch.cut(1, 1);
  ranks.run([&](uint32_t rank, Comm& comm) {
    cpu_set_t one;
    ASSERT_EQ(0, sched_getaffinity(0, sizeof one, &one));
    for (size_t core = CPU_SETSIZE; CPU_COUNT(&one) > 1;) CPU_CLR(--core, &one);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
    for (uint32_t i = 0; i < kOperations; ++i) {
      Error error;
      Call call = callOf(1, &error);
      call.args.aux = &launch;
      ASSERT_EQ(WL_OK, runOnCpu<LongOwnItem>(comm, call)) << error.message;
    }
    // Other programs may compute on that core too.
    EXPECT_LE(comm.group().lines(rank).state.contested, kOperations / 4) << "rank " << rank;
  });
}

// ---- whom a passed deadline of a small operation names ------------------------------------------

// The last to come runs every item, and takes its time for the first.
struct SlowItem : OneItem {
  static std::atomic<int32_t> runner;
  static void phase(const Launch&, uint32_t rank, uint32_t, uint32_t) {
    runner = static_cast<int32_t>(self);
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(600));
  }
};
std::atomic<int32_t> SlowItem::runner{-1};

TEST(Items, APassedDeadlineOfASmallMeetingNamesTheRankThatRunsItsItems) {
  for (const uint32_t n : {2u, 5u}) {
    Comms ranks(n, 1, 1, 150 * kMs);
    ranks.run([&](uint32_t rank, Comm& comm) {
      self = rank;
      Error error;
      EXPECT_EQ(WL_OK, runBarrier(comm, 20'000 * kMs, &error)) << error.message;
      const Code code = runOnCpu<SlowItem>(comm, callOf(1, &error));
      if (code == WL_OK) return;
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, code) << error.message;
      EXPECT_EQ(1, error.faulty_rank_count) << error.message;
      EXPECT_EQ(SlowItem::runner, error.faulty_ranks[0]) << error.message;
    });
  }
}

// The peers' lines say that they came, were released and left; rank 0 was too late to see it.
TEST(Items, APassedDeadlineOfASmallMeetingNamesNobodyWhoLeftIt) {
  Comms ranks(3, 1, 1, 20 * kMs);
  for (uint32_t peer = 1; peer < 3; ++peer) {
    windlass::RankLines& lines = ranks.group->lines(peer);
    lines.entry[1].descriptor = Descriptor::of(WL_OP_TRANSFER, 1);
    lines.state.sequence = 1;
    lines.state.operation = WL_OP_TRANSFER;
    lines.entry[1].sequence = 1;
  }
  Error error;
  EXPECT_EQ(WL_DEADLINE_EXCEEDED, runOnCpu<OneItem>(*ranks.comms[0], callOf(1, &error)));
  EXPECT_EQ(0, error.faulty_rank_count) << error.message;
  EXPECT_TRUE(contains(error.message, "every rank came"));
}

// ---- whom a DeadlineExceeded of claimed items of several phases names ---------------------------

struct TwoPhases : OneItem {
  static uint32_t phases(const Launch&) { return 2; }
};

// Enters operation 1 as a rank that waits, with `phases` phases of its own items run.
void enterAndWait(windlass::RankLines& lines, uint32_t phases) {
  lines.entry[1].descriptor = Descriptor::of(WL_OP_TRANSFER, 1);
  lines.state.busy = 1;
  lines.state.sequence = 1;
  lines.state.operation = WL_OP_TRANSFER;
  lines.state.awaited = -2;
  lines.done.word = windlass::phaseWord(1, phases);
  lines.entry[1].sequence = 1;
}

TEST(Items, APassedDeadlineOfClaimedItemsNamesTheRanksWhoseLaterPhaseHasNotRun) {
  Comms ranks(4, 64, 1, 20 * kMs);
  enterAndWait(ranks.group->lines(1), 2);
  enterAndWait(ranks.group->lines(2), 1);
  enterAndWait(ranks.group->lines(3), 1);
  Error error;
  EXPECT_EQ(WL_DEADLINE_EXCEEDED,
            runOnCpu<TwoPhases>(*ranks.comms[0], callOf(windlass::kSharedWorkBytes, &error)));
  EXPECT_EQ(2, error.faulty_rank_count) << error.message;
  EXPECT_EQ(2, error.faulty_ranks[0]) << error.message;
  EXPECT_EQ(3, error.faulty_ranks[1]) << error.message;
  EXPECT_TRUE(contains(error.message, "rank 2 has not finished"));
}

TEST(Items, APassedDeadlineNamesNobodyWhoWaitsInTheOperationBefore) {
  Comms ranks(4, 64, 1, 20 * kMs);
  for (uint32_t peer = 1; peer < 4; ++peer) enterAndWait(ranks.group->lines(peer), 2);
  Error error;
  ASSERT_EQ(WL_OK,
            runOnCpu<TwoPhases>(*ranks.comms[0], callOf(windlass::kSharedWorkBytes, &error)));
  ranks.group->lines(2).state.busy = 0;
  EXPECT_EQ(WL_DEADLINE_EXCEEDED,
            runOnCpu<TwoPhases>(*ranks.comms[0], callOf(windlass::kSharedWorkBytes, &error)));
  EXPECT_EQ(1, error.faulty_rank_count) << error.message;
  EXPECT_EQ(2, error.faulty_ranks[0]) << error.message;
  EXPECT_TRUE(contains(error.message, "rank 2 has not come"));
}

// While the rank runs its first item a peer takes the last one, and never runs it.
struct TakenItem : TwoPhases {
  static windlass::Work* work;
  static uint32_t blocks(const Launch&, uint32_t rank) { return rank == 0 ? 2 : 0; }
  static void phase(const Launch&, uint32_t, uint32_t, uint32_t) {
    work->next += windlass::kTakeBack;
  }
};
windlass::Work* TakenItem::work = nullptr;

TEST(Items, APassedDeadlineOfClaimedItemsNamesThisRankWhereItsOwnAloneHaveNotRun) {
  Comms ranks(2, 64, 1, 20 * kMs);
  TakenItem::work = &ranks.group->lines(0).work;
  enterAndWait(ranks.group->lines(1), 2);
  Error error;
  EXPECT_EQ(WL_DEADLINE_EXCEEDED,
            runOnCpu<TakenItem>(*ranks.comms[0], callOf(windlass::kSharedWorkBytes, &error)));
  EXPECT_EQ(1, error.faulty_rank_count) << error.message;
  EXPECT_EQ(0, error.faulty_ranks[0]) << error.message;
}

TEST(Items, APassedDeadlineOfClaimedItemsNamesTheRankThatRunsOneOfAnother) {
  Comms ranks(3, 64, 1, 20 * kMs);
  enterAndWait(ranks.group->lines(1), 2);
  enterAndWait(ranks.group->lines(2), 1);
  ranks.group->lines(1).state.running = 1;
  Error error;
  EXPECT_EQ(WL_DEADLINE_EXCEEDED,
            runOnCpu<TwoPhases>(*ranks.comms[0], callOf(windlass::kSharedWorkBytes, &error)));
  EXPECT_EQ(1, error.faulty_rank_count) << error.message;
  EXPECT_EQ(1, error.faulty_ranks[0]) << error.message;
}

TEST(Items, EveryCollectiveHasItsKernels) {
  for (const int operation :
       {WL_OP_BARRIER, WL_OP_ALL_TO_ALL, WL_OP_BROADCAST, WL_OP_ALL_GATHER,
        WL_OP_ALL_GATHER_DIM, WL_OP_REDUCE_SCATTER, WL_OP_ALL_REDUCE, WL_OP_SCATTER,
        WL_OP_GATHER, WL_OP_REDUCE, WL_OP_ALL_TO_ALL_V, WL_OP_ALL_GATHER_V,
        WL_OP_REDUCE_SCATTER_V, WL_OP_SCAN, WL_OP_EXCLUSIVE_SCAN, WL_OP_REDUCE_SCATTER_DIM}) {
    const windlass::Collective* collective = windlass::collectiveOf(operation);
    ASSERT_NE(nullptr, collective) << operation;
    for (uint32_t ranks = 0; ranks < windlass::kWaysToRun; ++ranks) {
      windlass::GroupConfig config;
      config.ranks = 2;
      const bool onCores =
          ranks == windlass::kThreadsOnCores || ranks == windlass::kProcessesOnCores;
      config.cores = onCores ? 2 : 1;
      config.spansProcesses = ranks >= windlass::kProcessesOnCores;
      config.hosts = ranks == windlass::kOnSeveralHosts ? 2 : 1;
      EXPECT_EQ(ranks, config.ranksAre());
      const uint64_t most = collective->limits.bytes(config.ranksAre());
      EXPECT_TRUE(most == 0 || collective->eager) << operation;
      EXPECT_LE(most, config.eagerBytes()) << operation;
    }
    EXPECT_TRUE(collective->algorithms[0].kernel) << operation;
    for (const windlass::Algorithm& algorithm : collective->algorithms)
      for (const auto& executor : algorithm.kernel.run)
        EXPECT_EQ(static_cast<bool>(algorithm.kernel), executor != nullptr) << operation;
  }
}

// ---- what a rank says between operations --------------------------------------------------------

TEST(Items, ProcessesCountAsThreadsOnceAllNameWindowsAlone) {
  windlass::GroupConfig config;
  config.ranks = 2;
  config.cores = 2;
  config.spansProcesses = true;
  const auto group = windlass::Group::create(config);
  alignas(64) static unsigned char window[2][4096];
  alignas(64) static unsigned char plain[4096];
  group->windows().hold(2, nullptr, window, sizeof window[0], sizeof window[0]);
  windlass::Operation ranks[] = {{*group, 0}, {*group, 1}};
  const auto enter = [&](uint64_t count, void* inOfRank1, void* outOfRank1) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Call call = Call::of(Descriptor::of(WL_OP_ALL_GATHER, count, WL_F32), 0, nullptr);
      call.args = {rank == 0 ? window[0] : inOfRank1, rank == 0 ? window[0] : outOfRank1, nullptr};
      call.inBytes = call.outBytes = count * sizeof(float);
      ranks[rank].count();
      ranks[rank].seePrevious();
      ranks[rank].fillEntry(call, true, true);
      ranks[rank].publishEntry();
    }
  };
  const auto expect = [&](windlass::RanksAre are) {
    for (const windlass::Operation& rank : ranks) EXPECT_EQ(are, rank.ranksAre());
  };
  enter(64, window[1], window[1]);
  expect(windlass::kProcessesOnCores);
  enter(64, plain, window[1]);  // an operation counts once all have entered the next one
  expect(windlass::kThreadsOnCores);
  enter(64, window[1], plain);
  expect(windlass::kProcessesOnCores);
  enter(64, window[1], window[1]);
  expect(windlass::kProcessesOnCores);
  enter(8, plain, plain);
  expect(windlass::kThreadsOnCores);
  enter(0, nullptr, nullptr);
  expect(windlass::kThreadsOnCores);  // few elements say nothing
}

TEST(Items, ARankThatOpensAPhaseSaysAfterwardsThatItWaitsForNobody) {
  Comms ranks(2, 1);
  for (int round = 0; round < 50; ++round) {
    ranks.run([&](uint32_t, Comm& comm) {
      Error error;
      EXPECT_EQ(WL_OK, runOnCpu<TwoPhases>(comm, callOf(windlass::kSharedWorkBytes, &error)))
          << error.message;
    });
    for (uint32_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(-1, ranks.group->lines(rank).state.awaited.load());
      EXPECT_EQ(0u, ranks.group->lines(rank).state.running.load());
    }
  }
}

}  // namespace items_test
}  // namespace windlass_test
