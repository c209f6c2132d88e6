// SPDX-License-Identifier: Apache-2.0
// New communicators of those that a failure leaves: threads, processes, and both.
#include <sys/resource.h>

#include "native/core/group.h"
#include "native/core/shrink/shrink.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/crew.h"

namespace windlass_test {
namespace shrink_test {

using windlass::Agreement;

std::vector<int> ranksWithout(const Crew& crew, const std::vector<int>& without) {
  std::vector<int> ranks;
  for (int rank = 0; rank < crew.ranks(); ++rank)
    if (std::find(without.begin(), without.end(), rank) == without.end()) ranks.push_back(rank);
  return ranks;
}

// Shrinks, and checks the new one; 0 where it could not.
int shrinkAndCheck(const Mate& mate, wl_comm_t* of, const std::vector<int>& former,
                   int64_t deadlineNs, uint64_t count = 3'000) {
  Error error;
  wl_comm_t* shrunk = nullptr;
  const int32_t code = wl_comm_shrink(of, deadlineNs, &shrunk, &error);
  if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", mate.rank, error.message);
  EXPECT_OF_MATE(mate, code == WL_OK);
  if (code != WL_OK) return 0;
  EXPECT_OF_MATE(mate, checkedGathers(mate, shrunk, former, count, 3, &error) == WL_OK);
  wl_comm_free(shrunk);
  return wl_comm_size(of);
}

class Shrinks : public testing::TestWithParam<Crew> {};

TEST_P(Shrinks, AfterAnAbortAllJoinANewOneInTheirOrder) {
  const Crew crew = GetParam();
  for (const int cores : {1, 64}) {
    Muster muster(crew, 20'000 * kMs, cores);
    muster.run([&](Mate& mate) {
      Error error;
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
      if (mate.rank == crew.ranks() - 1) wl_comm_abort(mate.comm, "start anew", &error);
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
      shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {}), 0, 20'000);
      // The old one stays as it was, and gives no second one.
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "start anew"));
      wl_comm_t* again = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &again, &error) == WL_INVALID_ARGUMENT);
      EXPECT_OF_MATE(mate, contains(error.message, "already") && again == nullptr);
    });
    EXPECT_EQ(0, muster.board().wrong);
  }
}

TEST_P(Shrinks, NobodyWaitsForARankThatHasClosed) {
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    Error error;
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
    if (mate.rank == 1) {
      EXPECT_OF_MATE(mate, wl_comm_close(mate.comm, &error) == WL_OK);
      wl_comm_t* shrunk = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_CLOSED);
      return;
    }
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
    const int64_t start = wl_clock_ns();
    shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {1}), 60'000 * kMs);
    EXPECT_OF_MATE(mate, wl_clock_ns() - start < 30'000 * kMs);
  });
  EXPECT_EQ(0, muster.board().wrong);
}

TEST_P(Shrinks, ARankThatDoesNotComeByTheDeadlineIsLeftOut) {
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    Error error;
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
    if (mate.rank == 0) wl_comm_abort(mate.comm, "start anew", &error);
    if (mate.rank == 0) {
      EXPECT_OF_MATE(mate, await([&] { return mate.board.at[1] == 1; }));
      wl_comm_t* shrunk = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "rank 0 was left out") && shrunk == nullptr);
      EXPECT_OF_MATE(mate, error.operation == WL_OP_SHRINK && error.faulty_ranks[0] == 0);
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "rank 0 was left out"));
      EXPECT_OF_MATE(mate, wl_comm_status(mate.comm, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "rank 0 was left out"));
      return;
    }
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
    // The deadline of whoever came first.
    int64_t first = 0;
    mate.board.struckNs.compare_exchange_strong(first, wl_clock_ns());
    shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {0}), 1'000 * kMs);
    EXPECT_OF_MATE(mate, wl_clock_ns() - mate.board.struckNs >= 999 * kMs);
    ++mate.board.at[mate.rank];
  });
  EXPECT_EQ(0, muster.board().wrong);
}

TEST_P(Shrinks, ARankThatGaveUpItsOwnIsToldSo) {
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    Error error;
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
    if (mate.rank == 0) {
      wl_comm_abort(mate.comm, "start anew", &error);
      std::thread impatient([&] {
        // Waits until that rank is in the call.
        usleep(50'000);
        for (Error none; mate.board.at[0] == 0; usleep(1000))
          wl_comm_abort(mate.comm, "too long", &none);
      });
      wl_comm_t* shrunk = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "rank 0 was aborted in shrink"));
      mate.board.at[0] = 1;
      impatient.join();
      EXPECT_OF_MATE(mate, await([&] { return mate.board.at[1] == 1; }));
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
      EXPECT_OF_MATE(mate, contains(error.message, "rank 0 was left out"));
      EXPECT_OF_MATE(mate, contains(error.message, "it had given up its own shrink by then"));
      return;
    }
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
    EXPECT_OF_MATE(mate, await([&] { return mate.board.at[0] == 1; }));
    shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {0}), 20'000 * kMs);
    ++mate.board.at[mate.rank];
  });
  EXPECT_EQ(0, muster.board().wrong);
}

// Down to one rank, one after another.
TEST_P(Shrinks, WhatShrankShrinksAgain) {
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    Error error;
    wl_comm_t* comm = mate.comm;
    std::vector<int> without;
    for (int leaver = crew.ranks() - 1; leaver >= 0; --leaver) {
      without.push_back(leaver);
      EXPECT_OF_MATE(mate, callBarrier(comm, 0, &error) == WL_OK);
      if (mate.rank == leaver) break;
      if (mate.rank == 0) wl_comm_abort(comm, "one less", &error);
      EXPECT_OF_MATE(mate, callBarrier(comm, 0, &error) == WL_ABORTED);
      wl_comm_t* shrunk = nullptr;
      const int32_t code = wl_comm_shrink(comm, 1'000 * kMs, &shrunk, &error);
      if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", mate.rank, error.message);
      EXPECT_OF_MATE(mate, code == WL_OK);
      if (comm != mate.comm) wl_comm_free(comm);
      comm = shrunk;
      if (code != WL_OK) return;
      const std::vector<int> former = ranksWithout(crew, without);
      EXPECT_OF_MATE(mate, checkedGathers(mate, comm, former, 500, 2, &error) == WL_OK);
    }
    if (comm != mate.comm) wl_comm_free(comm);
  });
  EXPECT_EQ(0, muster.board().wrong);
}

TEST_P(Shrinks, ACloseEndsItAndTheOthersGoOn) {
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    Error error;
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
    if (mate.rank == 0) wl_comm_abort(mate.comm, "start anew", &error);
    EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
    if (mate.rank == 1) {
      std::thread closer([&] {
        usleep(50'000);
        Error closing;
        EXPECT_OF_MATE(mate, wl_comm_close(mate.comm, &closing) == WL_OK);
        ++mate.board.at[1];
      });
      wl_comm_t* shrunk = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_CLOSED);
      closer.join();
      return;
    }
    // One of them comes once that one has closed.
    if (mate.rank == 0)
      EXPECT_OF_MATE(mate, await([&] { return mate.board.at[1] == 1; }));
    shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {1}), 0);
  });
  EXPECT_EQ(0, muster.board().wrong);
}

INSTANTIATE_TEST_SUITE_P(Crews, Shrinks,
                         testing::ValuesIn(
                             crews({{1, 2}, {1, 5}, {2, 1}, {4, 1}, {2, 2}, {3, 2}})));

class LosesAProcess : public testing::TestWithParam<Crew> {};

TEST_P(LosesAProcess, AndTheOthersGoOnInANewCommunicator) {
  const Crew crew = GetParam();
  for (int victim = 0; victim < crew.processes; ++victim) {
    Muster muster(crew);
    std::vector<int> lost;
    for (int rank = victim; rank < crew.ranks(); rank += crew.processes) lost.push_back(rank);
    muster.run([&](Mate& mate) {
      Error error;
      Held before = {};
      wl_window_t* window = nullptr;
      EXPECT_OF_MATE(mate, wl_window_create(mate.comm, 1 << 20, 0, &window, &error) == WL_OK);
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
      if (mate.isFirst) before = Held::look();
      ++mate.board.at[mate.rank];
      int32_t code = WL_OK;
      while (code == WL_OK) code = callBarrier(mate.comm, 0, &error);
      EXPECT_OF_MATE(mate, code == WL_PEER_LOST);
      shrinkAndCheck(mate, mate.comm, ranksWithout(crew, lost), 0, 20'000);
      wl_window_free(window);
      ++mate.board.at[mate.rank];
      EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 2, victim));
      // The window is gone, and a pidfd of the dead.
      const Held expected = {before.files - 1, before.threads, before.mappings - 1};
      if (mate.isFirst)
        EXPECT_OF_MATE(mate, await([&] { return Held::look().isWithin(expected); }, 5'000 * kMs));
      ++mate.board.at[mate.rank];
      EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 3, victim));
    },
               [&] {
                 EXPECT_TRUE(muster.board().awaitAll(crew, 1));
                 kill(muster.pid(victim), SIGKILL);
               });
    EXPECT_EQ(0, muster.board().wrong) << "process " << victim;
    for (int process = 0; process < crew.processes; ++process)
      EXPECT_EQ(process == victim ? -SIGKILL : 0, muster.ends[static_cast<size_t>(process)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Crews, LosesAProcess,
                         testing::ValuesIn(crews({{2, 1}, {4, 1}, {2, 2}, {3, 2}})));

// Whoever decides is killed in it, at any moment, and the next one after it.
TEST(Shrink, GoesOnWhereWhoeverDecidesDies) {
  const Crew crew = {5, 1};
  const int attempts = repetitions(3, 100);
  std::mt19937_64 random(seed());
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const auto momentUs = static_cast<useconds_t>(random() % 3'000);
    Muster muster(crew);
    muster.run(
        [&](Mate& mate) {
          Error error;
          EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
          if (mate.rank == 4) wl_comm_abort(mate.comm, "start anew", &error);
          EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
          ++mate.board.at[mate.rank];
          EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 1));
          // Repeats until a communicator has exactly these three ranks.
          wl_comm_t* comm = mate.comm;
          int32_t code = WL_ABORTED;
          for (int tries = 0; code != WL_OK && tries < 5; ++tries) {
            wl_comm_t* shrunk = nullptr;
            code = wl_comm_shrink(comm, 0, &shrunk, &error);
            if (code != WL_OK) break;
            if (comm != mate.comm) wl_comm_free(comm);
            comm = shrunk;
            // Who died after all had agreed is named there.
            code = callBarrier(comm, 0, &error);
            if (code == WL_OK && wl_comm_size(comm) > 3)
              while ((code = callBarrier(comm, 0, &error)) == WL_OK) usleep(100);
          }
          if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", mate.rank, error.message);
          EXPECT_OF_MATE(mate, code == WL_OK);
          if (code == WL_OK)
            EXPECT_OF_MATE(mate, checkedGathers(mate, comm, {2, 3, 4}, 500, 1, &error) == WL_OK);
          if (comm != mate.comm) wl_comm_free(comm);
        },
        [&] {
          EXPECT_TRUE(muster.board().awaitAll(crew, 1));
          usleep(momentUs);
          kill(muster.pid(0), SIGKILL);
          usleep(momentUs / 2);
          kill(muster.pid(1), SIGKILL);
        });
    EXPECT_EQ(0, muster.board().wrong) << momentUs << " us";
  }
}

// The proposal of a decider that died exists, and can no longer be opened.
TEST(Shrink, DropsWhatADeadRankProposed) {
  Comms ranks(3, 1);
  ranks.group->publishFailure(windlass::errorOf(WL_PEER_LOST, "rank 0 is dead"));
  ranks.group->member(0).lost = 1;
  ranks.group->member(0).shrink = Agreement::came(0);
  ranks.group->shared().shrink = Agreement{Agreement::kProposed, 0, 0, -1}.word();
  ranks.run([&](uint32_t rank, windlass::Comm& comm) {
    if (rank == 0) return;
    Error error;
    std::shared_ptr<windlass::Group> group;
    uint32_t as = 7;
    ASSERT_EQ(WL_OK, windlass::shrink(comm, 0, &group, &as, &error)) << error.message;
    EXPECT_EQ(2u, group->ranks());
    EXPECT_EQ(rank - 1, as);
    windlass::Comm shrunk(group, as);
    EXPECT_EQ(WL_OK, runBarrier(shrunk, 0, &error)) << error.message;
  });
  EXPECT_EQ(1u, Agreement::of(ranks.group->shared().shrink).round);
}

// It was stopped, the others have gone on, and now it runs again.
TEST(Shrink, ARevivedRankIsLeftOutAndHarmsNobody) {
  const Crew crew = {3, 1};
  // Cores of the in-line executor look for it in turn.
  const int64_t deadline = (deviceCores() > 0 ? 2'000 : 500) * kMs;
  for (const int victim : {0, 2}) {
    Muster muster(crew, deadline);
    muster.run(
        [&](Mate& mate) {
          Error error;
          wl_window_t* window = nullptr;
          EXPECT_OF_MATE(mate, wl_window_create(mate.comm, 1 << 20, 10'000 * kMs, &window,
                                                &error) == WL_OK);
          auto* own = static_cast<uint32_t*>(wl_window_address(window, mate.rank));
          ++mate.board.at[mate.rank];
          int32_t code = WL_OK;
          while (code == WL_OK) code = allGather(mate.comm, own, own + 20'000, 20'000, WL_U32, 0,
                                                 &error);
          if (mate.rank == victim) {
            EXPECT_OF_MATE(mate, code == WL_ABORTED || code == WL_DEADLINE_EXCEEDED);
            wl_comm_t* shrunk = nullptr;
            EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_ABORTED);
            EXPECT_OF_MATE(mate, contains(error.message, "was left out"));
            EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
            EXPECT_OF_MATE(mate, contains(error.message, "was left out"));
            // It may write what it likes.
            for (int of = 0; of < crew.ranks(); ++of)
              std::memset(wl_window_address(window, of), 0xee, 1 << 20);
            ++mate.board.at[mate.rank];
            wl_window_free(window);
            return;
          }
          if (error.faulty_ranks[0] != victim)
            std::fprintf(stderr, "%d: %s\n", code, error.message);
          EXPECT_OF_MATE(mate, code == WL_DEADLINE_EXCEEDED && error.faulty_ranks[0] == victim);
          wl_comm_t* shrunk = nullptr;
          EXPECT_OF_MATE(mate,
                         wl_comm_shrink(mate.comm, 2 * deadline, &shrunk, &error) == WL_OK);
          if (shrunk == nullptr) return;
          const std::vector<int> former = ranksWithout(crew, {victim});
          ++mate.board.at[mate.rank];
          // While the other one comes back.
          for (bool more = true; more && mate.board.wrong == 0;) {
            more = mate.board.at[victim] < 2;
            EXPECT_OF_MATE(mate, checkedGathers(mate, shrunk, former, 5'000, 20, &error) == WL_OK);
            // Both end in the same round.
            uint32_t mine = more ? 1 : 0, all = 0;
            EXPECT_OF_MATE(mate, callCollective(shrunk, WL_OP_ALL_REDUCE, &mine, 1, &all, 1, WL_U32,
                                                WL_MAX, WL_AUTO, 0, 0, 0, &error) == WL_OK);
            more = all != 0;
          }
          wl_window_free(window);
          wl_comm_free(shrunk);
        },
        [&] {
          EXPECT_TRUE(muster.board().awaitAll(crew, 1));
          usleep(20'000);
          kill(muster.pid(victim), SIGSTOP);
          EXPECT_TRUE(await([&] {
            int shrunk = 0;
            for (int rank = 0; rank < crew.ranks(); ++rank) shrunk += muster.board().at[rank] == 2;
            return shrunk == crew.ranks() - 1;
          }));
          kill(muster.pid(victim), SIGCONT);
        });
    EXPECT_EQ(0, muster.board().wrong) << "victim " << victim;
  }
}

// It has no file left to open the new one with.
TEST(Shrink, ARankThatCannotTakePartSaysSoAndTheOthersGoOn) {
  const Crew crew = {3, 1};
  for (const int victim : {0, 1}) {
    Muster muster(crew);
    muster.run([&](Mate& mate) {
      Error error;
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
      if (mate.rank == 2) wl_comm_abort(mate.comm, "start anew", &error);
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_ABORTED);
      if (mate.rank != victim) {
        shrinkAndCheck(mate, mate.comm, ranksWithout(crew, {victim}), 0);
        return;
      }
      rlimit before = {};
      getrlimit(RLIMIT_NOFILE, &before);
      const int next = dup(0);
      close(next);
      const rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &none);
      wl_comm_t* shrunk = nullptr;
      EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &error) == WL_RESOURCE);
      setrlimit(RLIMIT_NOFILE, &before);
      EXPECT_OF_MATE(mate, shrunk == nullptr);
    });
    EXPECT_EQ(0, muster.board().wrong) << "victim " << victim;
  }
}

TEST(Shrink, RefusesWhatIsWrong) {
  LocalRanks ranks(2);
  Error error;
  wl_comm_t* out = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_shrink(ranks.comms[0], 0, &out, &error));
  EXPECT_TRUE(contains(error.message, "the communicator lives"));
  EXPECT_EQ(WL_OK, wl_comm_status(ranks.comms[0], &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_shrink(nullptr, 0, &out, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_shrink(ranks.comms[0], -1, &out, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_shrink(ranks.comms[0], 0, nullptr, &error));
}

}  // namespace shrink_test
}  // namespace windlass_test
