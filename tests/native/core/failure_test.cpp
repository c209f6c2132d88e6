// SPDX-License-Identifier: Apache-2.0
// What ends a wait: a rank that never comes, abort, close, disagreement. And what may still be
// touched then.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace windlass_test {
namespace failure_test {

struct Late {
  int ranks;
  int cores;
};

class NeverComes : public testing::TestWithParam<Late> {};

// Latest time after the deadline at which a rank learnt of the missing rank. INT64_MAX if other
// work kept more ranks from arriving by then, all of which are named too.
int64_t latest(int n, int cores, int64_t deadline, uint64_t count) {
  const int missing = n / 2;
  std::atomic<int64_t> worst{0};
  const Shared<std::atomic<bool>> moreAreLate;
  // Outlive the ranks: a peer may still copy when a rank gets its DeadlineExceeded.
  const uint64_t elements = count * static_cast<uint64_t>(n);
  std::vector<std::vector<float>> ins(static_cast<size_t>(n), std::vector<float>(elements)),
      outs(ins);
  LocalRanks ranks(n, deadline, 1, cores);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const std::vector<float>& in = ins[static_cast<size_t>(rank)];
    std::vector<float>& out = outs[static_cast<size_t>(rank)];
    ASSERT_EQ(WL_OK, callBarrier(comm, 20'000 * kMs, &error)) << error.message;
    if (rank == missing) return;
    const int64_t start = wl_clock_ns();
    EXPECT_EQ(WL_DEADLINE_EXCEEDED,
              allToAll(comm, in.data(), out.data(), count, WL_F32, WL_AUTO, 0, &error));
    const int64_t late = wl_clock_ns() - start - deadline;
    for (int64_t seen = worst; late > seen && !worst.compare_exchange_weak(seen, late);) {
    }
    EXPECT_TRUE(contains(error.message, "barrier #1"));
    if (error.faulty_rank_count > 1) {
      *moreAreLate = true;
    } else {
      EXPECT_EQ(1, error.faulty_rank_count) << error.message;
      EXPECT_EQ(missing, error.faulty_ranks[0]) << error.message;
      EXPECT_TRUE(contains(error.message, "rank " + std::to_string(missing) + " has not come"));
    }
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, 0, &error))
        << "a dead communicator stays dead";
    EXPECT_TRUE(contains(error.message, "dead"));
  });
  return *moreAreLate ? INT64_MAX : worst.load();
}

TEST_P(NeverComes, EveryOtherRankGetsAPassedDeadlineThatNamesItAtTheDeadline) {
  const auto [n, cores] = GetParam();
  for (const uint64_t count : {4, 100'000}) {
    int64_t deadline = (kSlow > 1 || deviceCores() > 0 ? 600 : 150) * kMs;
    int64_t late = INT64_MAX;
    for (int attempt = 0; attempt < kAttempts && late == INT64_MAX; ++attempt) {
      late = latest(n, cores, deadline, count);
      if (late == INT64_MAX) deadline = std::min(2 * deadline, 10'000 * kMs);
    }
    ASSERT_NE(INT64_MAX, late) << "each time more ranks than one did not come by the deadline";
    EXPECT_GE(late, -kMs) << "nobody gives up before the deadline";
    std::printf("%d ranks, %d elements: a DeadlineExceeded %.1f ms after the deadline\n", n,
                static_cast<int>(count), static_cast<double>(late) / 1e6);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, NeverComes,
                         testing::Values(Late{2, 0}, Late{3, 0}, Late{4, 64}, Late{8, 0},
                                         Late{16, 0}));

// A chain: each rank is the root once, so ranks stand in different operations when one never comes.
TEST(PassedDeadline, NamesTheRankThatIsFurthestBehindAndNotItsNeighbour) {
  LocalRanks ranks(4, 600 * kMs, 1, 64);
  ranks.run([&](int rank, wl_comm_t* comm) {
    if (rank == 2) return;
    Error error;
    int code = WL_OK;
    for (int root = 0; root < 4 && code == WL_OK; ++root) {
      uint32_t value = 7;
      code = broadcast(comm, &value, &value, 1, WL_U32, root, WL_AUTO, 0, &error);
    }
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, code);
    EXPECT_EQ(1, error.faulty_rank_count) << error.message;
    EXPECT_EQ(2, error.faulty_ranks[0]) << error.message;
  });
}

TEST(PassedDeadline, OfOneCallOverridesTheCommunicators) {
  LocalRanks ranks(2, 60'000 * kMs);
  Error error;
  const int64_t start = wl_clock_ns();
  EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(ranks.comms[0], 50 * kMs, &error));
  EXPECT_LE(wl_clock_ns() - start, 30'000 * kMs) << "half the communicator's";
}

// Ranks that sleep in a barrier get the abort, and no DeadlineExceeded at their deadline. Returns
// the ns until the last of them has it.
int64_t abortLatency(int n) {
  LocalRanks ranks(n, 30'000 * kMs);
  std::atomic<int64_t> abortedAt{0};
  std::atomic<int64_t> last{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    if (rank == 0) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(40));  // long enough for everyone to sleep
      abortedAt = wl_clock_ns();
      EXPECT_EQ(WL_OK, wl_comm_abort(comm, "no more weights", &error));
      return;
    }
    EXPECT_EQ(WL_ABORTED, callBarrier(comm, 0, &error));
    const int64_t now = wl_clock_ns();
    for (int64_t seen = last; now > seen && !last.compare_exchange_weak(seen, now);) {
    }
    EXPECT_TRUE(contains(error.message, "no more weights"));
  });
  return last - abortedAt;
}

TEST(Abort, EndsAWait) {
  for (const int n : {2, 8})
    std::printf("%d ranks: an abort ends a barrier after %.1f ms\n", n,
                static_cast<double>(abortLatency(n)) / 1e6);
}

TEST(Abort, FirstReasonStands) {
  LocalRanks ranks(2);
  Error error;
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[0], "first", &error));
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[1], "second", &error));
  EXPECT_EQ(WL_ABORTED, callBarrier(ranks.comms[1], 0, &error));
  EXPECT_TRUE(contains(error.message, "first"));
  EXPECT_EQ(1, error.faulty_rank_count);
  EXPECT_EQ(0, error.faulty_ranks[0]);
  EXPECT_EQ(WL_ABORTED, wl_comm_status(ranks.comms[0], &error));
}

TEST(Fail, NamesThoseWhomTheCallerBlames) {
  LocalRanks ranks(3);
  Error error;
  const int32_t faultyRanks[] = {1, 3};
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            wl_comm_fail(ranks.comms[0], WL_DEADLINE_EXCEEDED, faultyRanks, 2, "late", &error));
  EXPECT_TRUE(contains(error.message, "faultyRanks[1] is 3, not 0 to 2")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_fail(ranks.comms[0], WL_OK, faultyRanks, 1, "", &error));
  EXPECT_EQ(WL_OK, wl_comm_status(ranks.comms[0], &error));

  EXPECT_EQ(WL_OK,
            wl_comm_fail(ranks.comms[0], WL_DEADLINE_EXCEEDED, faultyRanks, 1, "late", &error));
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[0], "second", &error));
  EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(ranks.comms[2], 0, &error));
  EXPECT_TRUE(contains(error.message, "late")) << error.message;
  EXPECT_EQ(1, error.faulty_rank_count);
  EXPECT_EQ(1, error.faulty_ranks[0]);

  LocalRanks others(2);
  wl_comm_close(others.comms[0], &error);
  wl_comm_fail(others.comms[0], WL_DEADLINE_EXCEEDED, faultyRanks, 1, "late", &error);
  EXPECT_EQ(WL_OK, wl_comm_status(others.comms[1], &error));
}

TEST(Close, EndsItsCallInFlightAndTellsPeers) {
  for (const int n : {2, 5}) {
    LocalRanks ranks(n, 30'000 * kMs);
    std::thread closer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      Error error;
      EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[1], &error)) << error.message;
    });
    ranks.run([&](int rank, wl_comm_t* comm) {
      if (rank == 0) return;  // never comes
      Error error;
      const int code = callBarrier(comm, 0, &error);
      EXPECT_EQ(rank == 1 ? WL_CLOSED : WL_ABORTED, code) << error.message;
      if (rank != 1) {
        EXPECT_TRUE(contains(error.message, "rank 1 closed"));
      }
    });
    closer.join();
  }
}

TEST(Close, APeerThatWaitsForARankThatLeftIsToldAtOnce) {
  for (const int n : {2, 6}) {
    LocalRanks ranks(n, 30'000 * kMs);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error));
      if (rank == n - 1) {
        EXPECT_EQ(WL_OK, wl_comm_close(comm, &error));
        EXPECT_EQ(WL_CLOSED, callBarrier(comm, 0, &error));
        return;
      }
      // Not the DeadlineExceeded of its deadline.
      EXPECT_EQ(WL_ABORTED, callBarrier(comm, 0, &error));
      EXPECT_EQ(n - 1, error.faulty_ranks[0]) << error.message;
    });
  }
}

TEST(Mismatch, OfOperationCountDTypeRootAndAlgorithmNamesBothSides) {
  using Body = std::function<int(wl_comm_t*, Error*)>;
  // Buffers outlive the ranks: a peer may still copy when a rank learns of the mismatch.
  std::vector<std::vector<double>> memory(16, std::vector<double>(200'000));
  const auto exchange = [&](uint64_t count, int dtype, int algorithm) -> Body {
    return [&memory, count, dtype, algorithm](wl_comm_t* comm, Error* error) {
      const auto rank = static_cast<size_t>(wl_comm_rank(comm));
      return allToAll(comm, memory[2 * rank].data(), memory[2 * rank + 1].data(), count, dtype,
                           algorithm, 0, error);
    };
  };
  const auto broadcast = [&](uint64_t count, int root) -> Body {
    return [&memory, count, root](wl_comm_t* comm, Error* error) {
      double* out = memory[2 * static_cast<size_t>(wl_comm_rank(comm))].data();
      return windlass_test::broadcast(comm, out, out, count, WL_F32, root, WL_AUTO, 0, error);
    };
  };
  const Body barrier = [](wl_comm_t* comm, Error* error) { return callBarrier(comm, 0, error); };
  const std::pair<Body, Body> pairs[] = {
      {barrier, exchange(4, WL_F32, WL_PUSH)},
      {exchange(4, WL_F32, WL_PUSH), exchange(5, WL_F32, WL_PUSH)},
      {exchange(4, WL_F32, WL_PUSH), exchange(4, WL_I32, WL_PUSH)},
      {exchange(4, WL_F32, WL_PUSH), exchange(4, WL_F32, WL_PULL)},
      {exchange(4, WL_F32, WL_PUSH), exchange(40'000, WL_F32, WL_PUSH)},
      {broadcast(8, 0), broadcast(8, 1)},
      {broadcast(8, 0), broadcast(9, 0)},
      {broadcast(8, 1), barrier},
  };
  for (const int n : {2, 3, 8}) {
    for (const int cores : {1, 64}) {
      for (const auto& [common, odd] : pairs) {
        LocalRanks ranks(n, 10'000 * kMs, 1, cores);
        std::atomic<int> mismatches{0};
        ranks.run([&, common = common, odd = odd](int rank, wl_comm_t* comm) {
          Error error;
          int code = (rank == n - 1 ? odd : common)(comm, &error);
          if (code == WL_OK)
            code = callBarrier(comm, 0, &error);  // a rank that had returned gets it now
          EXPECT_EQ(WL_MISMATCH, code) << error.message;
          EXPECT_EQ(2, error.faulty_rank_count);
          mismatches += contains(error.message, "rank " + std::to_string(n - 1)) ? 1 : 0;
        });
        EXPECT_EQ(n, mismatches);
      }
    }
  }
}

TEST(Mismatch, ReachesThoseInsideThoughTheOtherSideReturnedAndCallsNothingMore) {
  for (const int cores : {1, 64}) {
    LocalRanks ranks(3, 20'000 * kMs, 1, cores);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint32_t value = 5;
      if (rank == 2) {
        // The root of a small broadcast waits for nobody.
        broadcast(comm, &value, &value, 1, WL_U32, 2, WL_AUTO, 0, &error);
        return;
      }
      // Not the DeadlineExceeded of its deadline.
      EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error)) << error.message;
      EXPECT_TRUE(contains(error.message, "rank 2"));
    });
  }
}

TEST(Begin, ASecondThreadOnOneRankIsRefused) {
  LocalRanks ranks(2);
  std::thread first([&] {
    Error error;
    EXPECT_EQ(WL_ABORTED, callBarrier(ranks.comms[0], 0, &error));
  });
  awaitInside(ranks.comms[1], 0, WL_OP_BARRIER);
  Error error;
  EXPECT_EQ(WL_INVALID_ARGUMENT, callBarrier(ranks.comms[0], 0, &error));
  EXPECT_TRUE(contains(error.message, "another thread"));
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[1], "enough", &error));
  first.join();
}

// ---- a peer stopped in mid-copy -----------------------------------------------------------------

sem_t stopped;
sem_t resume;

void stopHere(int) {
  sem_post(&stopped);
  while (sem_wait(&resume) != 0) {
  }
}

// Rank 1 is stopped inside the copy; rank 0 times out; both windows are freed; rank 1 goes on
// copying from one into the other. False when the signal came too late, after the copy.
bool stopInMidCopy() {
  LocalRanks ranks(2, 300 * kMs, 1, 64);
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  std::atomic<bool> ready{false};
  std::atomic<pthread_t> copier{};
  wl_window_t* other = nullptr;
  std::thread two([&] {
    Error error;
    ASSERT_EQ(WL_OK, wl_window_create(ranks.comms[1], 4 * kBytes, 20'000 * kMs, &other, &error))
        << error.message;
    auto* in = static_cast<uint8_t*>(wl_window_address(other, 1));
    copier = pthread_self();
    ready = true;
    callBarrier(ranks.comms[1], 20'000 * kMs, &error);
    // Ok when this rank's result is whole by then; the communicator is dead all the same.
    allToAll(ranks.comms[1], in, in + 2 * kBytes, kBytes, WL_U8, WL_PUSH, 0, &error);
    callBarrier(ranks.comms[1], 0, &error);
  });
  Error error;
  wl_window_t* window = nullptr;
  EXPECT_EQ(WL_OK, wl_window_create(ranks.comms[0], 4 * kBytes, 20'000 * kMs, &window, &error))
      << error.message;
  auto* in = static_cast<uint8_t*>(wl_window_address(window, 0));
  while (!ready) std::this_thread::yield();
  std::thread stopper([&] {
    wl_rank_state_t first = {}, second = {};
    first.struct_size = second.struct_size = sizeof first;
    // Asleep between its looks: it would keep a rank off its core, and the other one waiting.
    do {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      wl_comm_state(ranks.comms[0], 0, &first);
      wl_comm_state(ranks.comms[0], 1, &second);
    } while (first.operation != WL_OP_ALL_TO_ALL || second.operation != WL_OP_ALL_TO_ALL);
    // Both are inside; together they move 256 MiB, for tens of milliseconds.
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pthread_kill(copier, SIGUSR2);
    sem_wait(&stopped);
  });
  callBarrier(ranks.comms[0], 20'000 * kMs, &error);
  const int code =
      allToAll(ranks.comms[0], in, in + 2 * kBytes, kBytes, WL_U8, WL_PUSH, 0, &error);
  stopper.join();
  const bool inTime = code != WL_OK;
  if (inTime) {
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, code) << error.message;
    EXPECT_EQ(1, error.faulty_ranks[0]) << error.message;
    EXPECT_TRUE(contains(error.message, "rank 1 has not finished: it is in all-to-all("));
    EXPECT_EQ(0, wl_comm_quiescent(ranks.comms[0]));
  }
  wl_window_free(window);
  wl_window_free(other);
  sem_post(&resume);
  two.join();
  if (inTime) {
    EXPECT_EQ(1, wl_comm_quiescent(ranks.comms[0]));
  }
  return inTime;
}

TEST(Release, MemoryFreedAfterAPassedDeadlineOutlivesAPeerStoppedInMidCopy) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer delivers a signal after a copy, not in it: the builds without it "
         "and with AddressSanitizer run this";
#endif
  sem_init(&stopped, 0, 0);
  sem_init(&resume, 0, 0);
  struct sigaction action = {};
  action.sa_handler = stopHere;
  sigaction(SIGUSR2, &action, nullptr);
  bool inTime = false;
  for (int attempt = 0; attempt < 20 && !inTime; ++attempt) inTime = stopInMidCopy();
  EXPECT_TRUE(inTime) << "the signal never met the copy";
  signal(SIGUSR2, SIG_DFL);
}

}  // namespace failure_test
}  // namespace windlass_test
