// SPDX-License-Identifier: Apache-2.0
// Put, get, notify and wait: bit for bit against one element at a time, slots used over and over
// with random delays, sequences about to wrap, and what ends a wait.
#include <tuple>

#include "native/abi/handles.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace one_sided_test {

using Bytes = std::vector<uint8_t>;

wl_tensor_t bytes(void* data, const int64_t* count) {
  static const int64_t kOne = 1;
  return {sizeof(wl_tensor_t), WL_U8, 1, 0, data, count, &kOne};
}

// ---- moves --------------------------------------------------------------------------------------

class Moves : public testing::TestWithParam<std::tuple<int, int>> {};

constexpr int64_t kTile = 16384;

TEST_P(Moves, PutAndGetMoveTheElementsOfAViewAndNoOther) {
  const auto [n, cores] = GetParam();
  const uint64_t firstSeed = seed();
  LocalRanks ranks(n, 30'000 * kMs, 1, cores);
  // An inbox for each writer, and the same bytes of the window for each rank's own source.
  constexpr uint64_t kInbox = 400'000;
  const uint64_t source = kInbox * static_cast<uint64_t>(n);
  Windows windows(ranks, source + kInbox, 1);
  const std::vector<std::vector<int64_t>> shapes = {
      {},        {0},        {1},          {13},      {kTile - 1}, {kTile}, {9, 7},
      {3, 0, 2}, {33, 5, 2}, {2, 3, 4, 5}, {40, 300}, {kTile + 1}, {1, 17}, {2, 1, 3, 1, 2, 2}};
  std::atomic<int> wrong{0};
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    std::mt19937_64 random(firstSeed);  // the same choices on every rank
    uint32_t round = 0;
    for (const int dtype : {WL_U8, WL_BF16, WL_F32, WL_C64}) {
      const auto size = static_cast<size_t>(wl_dtype_size(dtype));
      for (const auto& shape : shapes) {
        ++round;
        const View local(shape, random() % 2 == 0, random);
        const View remote(shape, random() % 2 == 0, random);
        const int step = static_cast<int>(random() % static_cast<uint64_t>(n));
        const int to = (rank + step) % n;
        const int from = (rank - step + n) % n;
        const bool inWindow = random() % 2 == 0;
        const auto stampOf = [&](int sender, size_t i) {
          return static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(sender), 0, i));
        };
        Bytes own(local.elements * size), theirs(own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          own[i] = stampOf(rank, i);
          theirs[i] = stampOf(from, i);
        }
        Bytes plain = own;
        uint8_t* out = inWindow ? windows.at(rank, source) : plain.data();
        std::memcpy(out, own.data(), own.size());
        uint8_t* inbox = windows.at(rank, static_cast<uint64_t>(from) * kInbox);
        Bytes expected(remote.elements * size, 0xa5);
        std::memset(inbox, 0xa5, expected.size());
        moveSlowly(expected.data(), remote, theirs.data(), local, size);
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;

        // Addresses in the own part stand for the same offsets in the peer's.
        const wl_tensor_t outbox =
            remote.tensor(windows.at(rank, static_cast<uint64_t>(rank) * kInbox), dtype);
        ASSERT_EQ(WL_OK, windows.put(rank, local.tensor(out, dtype), to, outbox, &error))
            << error.message;
        std::memset(out, 0x11, own.size());
        ASSERT_EQ(WL_OK, windows.notify(rank, to, 0, round, &error)) << error.message;
        ASSERT_EQ(WL_OK, windows.wait(rank, from, 0, round, &error)) << error.message;
        wrong += std::memcmp(inbox, expected.data(), expected.size()) != 0;

        // The received bytes are equal to the sent ones.
        Bytes back(own.size(), 0x3c), whole(own.size(), 0x3c);
        moveSlowly(whole.data(), local, own.data(), local, size);
        ASSERT_EQ(WL_OK, windows.get(rank, local.tensor(back.data(), dtype), to, outbox, &error))
            << error.message;
        wrong += back != whole;
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        ASSERT_EQ(0, wrong) << "round " << round << ": dtype " << dtype << ", shape "
                            << testing::PrintToString(shape) << ", local strides "
                            << testing::PrintToString(local.strides) << ", remote strides "
                            << testing::PrintToString(remote.strides);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(RanksAndCores, Moves,
                         testing::Combine(testing::ValuesIn(rankCounts()),
                                          testing::Values(1, 64)));

// Beyond the size from which copies use non-temporal stores.
TEST(OneSided, ANotifyReleasesALargePut) {
  constexpr int64_t kCount = int64_t{20} << 20;
  LocalRanks ranks(2, 30'000 * kMs);
  Windows windows(ranks, kCount, 1);
  Bytes data(kCount);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 31 >> 7);
  ranks.run([&](int rank, wl_comm_t*) {
    Error error;
    if (rank == 1) {
      ASSERT_EQ(WL_OK, windows.wait(1, 0, 0, 1, &error)) << error.message;
      EXPECT_EQ(0, std::memcmp(windows.at(1, 0), data.data(), data.size()));
      return;
    }
    const wl_tensor_t local = bytes(data.data(), &kCount);
    const wl_tensor_t remote = bytes(windows.at(0, 0), &kCount);
    ASSERT_EQ(WL_OK, windows.put(0, local, 1, remote, &error)) << error.message;
    ASSERT_EQ(WL_OK, windows.notify(0, 1, 0, 1, &error)) << error.message;
  });
}

// ---- signals ------------------------------------------------------------------------------------

struct Stream {
  int ranks;
  int cores;
  uint32_t first;  // value of the signals before the first message
  int busy;
  int messages;
};

void PrintTo(const Stream& s, std::ostream* out) {
  *out << s.ranks << " ranks, " << s.cores << " cores, from " << s.first << ", " << s.busy
       << " busy threads, " << s.messages << " messages";
}

class Streams : public testing::TestWithParam<Stream> {};

constexpr int kData = 0;  // signals: a message has come
constexpr int kRead = 1;  // and has been read

// Moves both signals of the neighbours on to `first`, in steps that signals allow.
void moveOn(Windows& windows, int rank, int right, int left, uint32_t first) {
  Error error;
  constexpr uint32_t kStep = (uint32_t{1} << 30) - 1;
  for (uint32_t value = 0; value != first;) {
    value = first - value > kStep ? value + kStep : first;
    ASSERT_EQ(WL_OK, windows.notify(rank, right, kData, value, &error)) << error.message;
    ASSERT_EQ(WL_OK, windows.notify(rank, left, kRead, value, &error)) << error.message;
  }
}

TEST_P(Streams, ARingOfProducersAndConsumersReusesTwoSlots) {
  const Stream s = GetParam();
  const uint64_t firstSeed = seed();
  constexpr int64_t kLargest = 700;
  BusyThreads busy(s.busy);
  LocalRanks ranks(s.ranks, 30'000 * kMs, 1, s.cores);
  Windows windows(ranks, 2 * kLargest * 4, 2);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    const int right = (rank + 1) % s.ranks;
    const int left = (rank + s.ranks - 1) % s.ranks;
    moveOn(windows, rank, right, left, s.first);
    Error error;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    std::mt19937_64 own(firstSeed + static_cast<uint64_t>(rank));
    std::mt19937_64 common(firstSeed * 31);
    std::vector<uint32_t> message(kLargest);
    const int64_t one = 1;
    for (int i = 1; i <= s.messages && wrong == 0; ++i) {
      const uint32_t sequence = s.first + static_cast<uint32_t>(i);
      const auto count = static_cast<int64_t>(common() % kLargest);
      const uint64_t slot = static_cast<uint64_t>(i % 2) * kLargest * 4;
      for (size_t e = 0; e < static_cast<size_t>(count); ++e)
        message[e] = stamp(sequence, static_cast<uint32_t>(rank), 0, e);
      if (own() % 64 == 0) spinFor(static_cast<int64_t>(own() % 30'000));
      // The message before the last has been read: its slot is free.
      int code = i > 2 ? windows.wait(rank, right, kRead, sequence - 2, &error) : WL_OK;
      wl_tensor_t local = {sizeof(wl_tensor_t), WL_U32, 1, 0, message.data(), &count, &one};
      wl_tensor_t remote = local;
      remote.data = windows.at(rank, slot);
      if (code == WL_OK) code = windows.put(rank, local, right, remote, &error);
      if (code == WL_OK) code = windows.notify(rank, right, kData, sequence, &error);
      if (own() % 64 == 0) spinFor(static_cast<int64_t>(own() % 30'000));
      if (code == WL_OK) code = windows.wait(rank, left, kData, sequence, &error);
      const auto* inbox = reinterpret_cast<const uint32_t*>(windows.at(rank, slot));
      for (size_t e = 0; e < static_cast<size_t>(count) && code == WL_OK; ++e)
        wrong += inbox[e] != stamp(sequence, static_cast<uint32_t>(left), 0, e);
      if (code == WL_OK) code = windows.notify(rank, left, kRead, sequence, &error);
      if (code != WL_OK) {
        ADD_FAILURE() << "rank " << rank << " message " << i << ": " << error.message;
        ++wrong;
      }
    }
  });
  EXPECT_EQ(0, wrong);
}

std::vector<Stream> streams() {
  std::vector<Stream> all;
  for (const int ranks : {1, 2, 3, 8}) {
    const int messages = (ranks <= 3 ? 10'000 : 2'000) / slow();
    all.push_back({ranks, 0, 0, 0, messages});
    all.push_back({ranks, 0, 0x7fffff00u, 0, messages});
    all.push_back({ranks, 64, 0xffffff00u, 0, messages / 5});
    if (ranks > 1) all.push_back({ranks, 1, 0xffffff00u, 0, messages});
    if (ranks > 1) all.push_back({ranks, 0, 0, 2, 400 / slow()});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Streams, testing::ValuesIn(streams()));

TEST(Signal, HasALineForEachWriterAndMovesForwardAlone) {
  LocalRanks ranks(3);
  Windows windows(ranks, 0, 2);
  Error error;
  ASSERT_EQ(WL_OK, windows.notify(1, 0, 1, 5, &error)) << error.message;
  ASSERT_EQ(WL_OK, windows.notify(2, 0, 1, 9, &error)) << error.message;
  int32_t reached = -1;
  for (const auto& [peer, index, value, expected] : {std::tuple{1, 1, 5, 1},
                                                     {1, 1, 4, 1},
                                                     {1, 1, 6, 0},
                                                     {2, 1, 9, 1},
                                                     {2, 1, 10, 0},
                                                     {1, 0, 1, 0},
                                                     {0, 1, 1, 0}}) {
    ASSERT_EQ(WL_OK, windows.test(0, peer, index, static_cast<uint32_t>(value), &reached, &error))
        << error.message;
    EXPECT_EQ(expected, reached) << "signal " << index << " of rank " << peer << ", " << value;
  }
  EXPECT_EQ(WL_OK, windows.notify(1, 0, 1, 5, &error)) << "where it is: " << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.notify(1, 0, 1, 4, &error));
  EXPECT_TRUE(contains(error.message, "the signal is at 5"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.notify(1, 0, 1, 5 + (1u << 30), &error));
  EXPECT_EQ(WL_OK, windows.notify(1, 0, 1, 4 + (1u << 30), &error)) << error.message;
  EXPECT_EQ(WL_OK, windows.wait(0, 1, 1, 4 + (1u << 30), &error)) << error.message;
}

TEST(OneSided, TakesNoSequence) {
  LocalRanks ranks(3);
  Windows windows(ranks, 64, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    for (uint32_t i = 1; i <= 5; ++i) {
      if (rank == 0) {
        EXPECT_EQ(WL_OK, windows.notify(0, 2, 0, i, &error)) << error.message;
      }
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    }
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    ASSERT_EQ(WL_OK, wl_comm_state(comm, rank, &state));
    EXPECT_EQ(6u, state.sequence) << "a window and five barriers";
  });
}

TEST(OneSided, ANotifyRingsASleeper) {
  for (const int cores : {1, 64}) {
    LocalRanks ranks(2, 20'000 * kMs, 1, cores);
    Windows windows(ranks, 0, 1);
    const windlass::Doorbell& bell = ranks.comms[0]->comm.group().lines(0).bell;
    const uint32_t before = bell.ring.load();
    // A rank that is not asleep and not about to sleep wakes without help, so that round shows
    // nothing.
    for (uint32_t round = 1; round <= 200 && bell.ring.load() == before; ++round) {
      std::thread sleeper([&] {
        Error error;
        EXPECT_EQ(WL_OK, windows.wait(0, 1, 0, round, &error)) << error.message;
      });
      while (bell.sleeping.load() == 0) std::this_thread::yield();
      Error error;
      EXPECT_EQ(WL_OK, windows.notify(1, 0, 0, round, &error)) << error.message;
      sleeper.join();
    }
    EXPECT_GT(bell.ring.load(), before) << cores << " cores";
  }
}

// ---- what ends a wait ---------------------------------------------------------------------------

TEST(OneSidedPassedDeadline, NamesTheWriterAndWhatWasSeen) {
  constexpr int64_t kDeadline = 100 * kMs;
  LocalRanks ranks(3, 20'000 * kMs);
  Windows windows(ranks, 0, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    if (rank == 1) {
      ASSERT_EQ(WL_OK, windows.notify(1, 0, 0, 7, &error)) << error.message;
    } else if (rank == 2) {
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, 0, &error)) << "the record is everyone's";
    } else {
      ASSERT_EQ(WL_OK, windows.wait(0, 1, 0, 7, &error)) << error.message;
      const int64_t start = wl_clock_ns();
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, windows.wait(0, 1, 0, 9, &error, kDeadline));
      EXPECT_GE(wl_clock_ns() - start, kDeadline - kMs);
      EXPECT_EQ(WL_OP_WAIT, error.operation);
      EXPECT_EQ(1, error.faulty_rank_count);
      EXPECT_EQ(1, error.faulty_ranks[0]);
      EXPECT_TRUE(contains(error.message, "wait(value 9 from rank 1)"));
      EXPECT_TRUE(contains(error.message, "rank 1 has notified no more than 7"));
      EXPECT_TRUE(contains(error.message, "it finished notify(value 7 to rank 0) after #1 "));
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, windows.wait(0, 1, 0, 7, &error))
          << "a dead communicator stays dead";
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, windows.notify(0, 1, 0, 1, &error));
    }
  });
}

TEST(OneSidedPassedDeadline, OfACollectiveNamesTheRankThatWaitsForASignalInstead) {
  LocalRanks ranks(3, 20'000 * kMs, 1, 64);
  Windows windows(ranks, 0, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    if (rank == 1) {
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, windows.wait(1, 0, 0, 1, &error));
      return;
    }
    if (rank == 0) {
      awaitInside(comm, 1, WL_OP_WAIT);
      awaitInside(comm, 2, WL_OP_BARRIER);
    }
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, rank == 0 ? 200 * kMs : 0, &error));
    EXPECT_EQ(1, error.faulty_rank_count) << error.message;
    EXPECT_EQ(1, error.faulty_ranks[0]) << error.message;
    EXPECT_TRUE(contains(error.message, "it is in wait(value 1 from rank 0) after #1"));
  });
}

// Ranks that sleep in a wait get the abort, and no DeadlineExceeded at their deadline. Returns the
// ns until the last of them has it.
int64_t abortLatency(int n) {
  LocalRanks ranks(n, 30'000 * kMs);
  Windows windows(ranks, 0, 1);
  std::atomic<int64_t> abortedAt{0};
  std::atomic<int64_t> last{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    if (rank == 0) {
      // Long enough for everyone to sleep.
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      abortedAt = wl_clock_ns();
      EXPECT_EQ(WL_OK, wl_comm_abort(comm, "no more messages", &error));
      return;
    }
    EXPECT_EQ(WL_ABORTED, windows.wait(rank, 0, 0, 1, &error));
    const int64_t now = wl_clock_ns();
    for (int64_t seen = last; now > seen && !last.compare_exchange_weak(seen, now);) {
    }
    EXPECT_TRUE(contains(error.message, "no more messages"));
  });
  return last - abortedAt;
}

TEST(OneSidedAbort, EndsAWait) {
  for (const int n : {2, 8})
    std::printf("%d ranks: an abort ends a wait after %.1f ms\n", n,
                static_cast<double>(abortLatency(n)) / 1e6);
}

TEST(OneSidedClose, EndsItsOwnWait) {
  LocalRanks ranks(2, 30'000 * kMs);
  Windows windows(ranks, 0, 1);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    Error error;
    EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[0], &error)) << error.message;
  });
  Error error;
  EXPECT_EQ(WL_CLOSED, windows.wait(0, 1, 0, 1, &error));
  EXPECT_TRUE(contains(error.message, "wait after #1"));
  closer.join();
  EXPECT_EQ(WL_CLOSED, windows.notify(0, 1, 0, 1, &error));
}

TEST(OneSidedClose, OfThePeerEndsEveryOperationThatNeedsIt) {
  const int64_t count = 8;
  Bytes memory(8);
  using Body = std::function<int(Windows&, Error*)>;
  const Body bodies[] = {
      [&](Windows& w, Error* e) {
        return w.put(0, bytes(memory.data(), &count), 1, bytes(w.at(0, 0), &count), e);
      },
      [&](Windows& w, Error* e) {
        return w.get(0, bytes(memory.data(), &count), 1, bytes(w.at(0, 0), &count), e);
      },
      [&](Windows& w, Error* e) { return w.notify(0, 1, 0, 1, e); },
      [&](Windows& w, Error* e) { return w.wait(0, 1, 0, 1, e); },
      [&](Windows& w, Error* e) {
        int32_t reached = 0;
        return w.test(0, 1, 0, 1, &reached, e);
      },
  };
  for (const Body& body : bodies) {
    LocalRanks ranks(3, 30'000 * kMs);
    Windows windows(ranks, 8, 1);
    Error error;
    EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[2], &error));
    EXPECT_EQ(WL_OK, windows.notify(0, 1, 0, 0, &error)) << "of another peer: " << error.message;
    EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[1], &error));
    // Not the DeadlineExceeded of its deadline.
    EXPECT_EQ(WL_ABORTED, body(windows, &error)) << error.message;
    EXPECT_EQ(1, error.faulty_rank_count) << error.message;
    EXPECT_EQ(1, error.faulty_ranks[0]) << error.message;
    EXPECT_TRUE(contains(error.message, "rank 1 closed the communicator"));
  }
}

TEST(OneSidedClose, OfAPeerThatHasNotifiedLosesNothing) {
  for (int round = 0; round < 2'000 / slow(); ++round) {
    LocalRanks ranks(2, 30'000 * kMs);
    Windows windows(ranks, 0, 1);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (rank == 0) {
        ASSERT_EQ(WL_OK, windows.wait(0, 1, 0, 1, &error)) << error.message;
      } else {
        ASSERT_EQ(WL_OK, windows.notify(1, 0, 0, 1, &error)) << error.message;
        ASSERT_EQ(WL_OK, wl_comm_close(comm, &error)) << error.message;
      }
    });
  }
}

TEST(OneSided, APeerMayFreeItsWindowInTheMiddle) {
  LocalRanks ranks(2);
  Windows windows(ranks, 1 << 20, 1);
  const int64_t count = 1 << 20;
  Bytes data(1 << 20, 7);
  ranks.run([&](int rank, wl_comm_t*) {
    Error error;
    if (rank == 1) {
      ASSERT_EQ(WL_OK, windows.wait(1, 0, 0, 1, &error)) << error.message;
      wl_window_free(windows.handle(1));
      windows.handle(1) = nullptr;
      return;
    }
    for (uint32_t i = 1; i <= 20; ++i) {
      ASSERT_EQ(WL_OK, windows.put(0, bytes(data.data(), &count), 1,
                                   bytes(windows.at(0, 0), &count), &error))
          << error.message;
      ASSERT_EQ(WL_OK, windows.notify(0, 1, 0, i, &error)) << error.message;
    }
  });
}

TEST(OneSided, ASecondThreadOnOneRankIsRefused) {
  LocalRanks ranks(2, 20'000 * kMs);
  Windows windows(ranks, 0, 1);
  std::thread first([&] {
    Error error;
    EXPECT_EQ(WL_OK, windows.wait(0, 1, 0, 1, &error)) << error.message;
  });
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  do {
    ASSERT_EQ(WL_OK, wl_comm_state(ranks.comms[1], 0, &state));
  } while (state.busy == 0 || state.operation != WL_OP_WAIT || state.awaited != 1);
  Error error;
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.notify(0, 1, 0, 1, &error));
  EXPECT_TRUE(contains(error.message, "another thread is inside wait"));
  EXPECT_EQ(WL_OK, windows.notify(1, 0, 0, 1, &error)) << error.message;
  first.join();
}

TEST(OneSided, ArgumentsAreCheckedBeforeAnythingMoves) {
  LocalRanks ranks(2), others(2);
  Windows windows(ranks, 100, 1);
  Windows elsewhere(others, 64, 1);
  const std::vector<int64_t> shape = {4, 2}, strides = {2, 1}, flat = {0, 1};
  alignas(64) float memory[8] = {};
  const wl_tensor_t local = {sizeof(wl_tensor_t), WL_F32,        2, 0, memory,
                             shape.data(),        strides.data()};
  wl_tensor_t remote = local;
  remote.data = windows.at(0, 0);
  Error error;
  const auto refuses = [&](const wl_tensor_t& from, int peer, const wl_tensor_t& to,
                           const std::string& says) {
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.put(0, from, peer, to, &error));
    EXPECT_TRUE(contains(error.message, "put: " + says));
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.accumulate(0, from, peer, to, &error));
    EXPECT_TRUE(contains(error.message, "accumulate: " + says));
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.get(0, from, peer, to, &error));
    EXPECT_TRUE(contains(error.message, "get: " + says));
  };
  const auto changed = [](wl_tensor_t tensor, auto&& change) {
    change(tensor);
    return tensor;
  };
  refuses(local, -1, remote, "peer is -1; it must lie in [0, 2)");
  refuses(local, 2, remote, "peer is 2; it must lie in [0, 2)");
  refuses(changed(local, [](auto& t) { t.dtype = WL_I32; }), 1, remote,
          "local is i32[4, 2], remote f32[4, 2]; dtypes and shapes must agree");
  refuses(changed(local, [](auto& t) { t.ndim = 1; }), 1, remote,
          "local is f32[4], remote f32[4, 2]; dtypes and shapes must agree");
  refuses(changed(local, [](auto& t) { t.data = nullptr; }), 1, remote, "local: data is NULL");
  refuses(changed(local, [&](auto& t) { t.data = reinterpret_cast<char*>(memory) + 2; }), 1, remote,
          "local is not aligned");
  refuses(local, 1, changed(remote, [](auto& t) { t.struct_size = 8; }), "remote: struct_size");
  const auto at = [&](int64_t offset) {
    return changed(remote, [&](auto& t) { t.data = windows.at(0, 0) + offset; });
  };
  const auto end = static_cast<int64_t>(wl_window_bytes(windows.handle(0)));
  refuses(local, 1, at(2), "remote is not aligned");
  refuses(local, 1, at(end - 28), "remote reaches outside");
  refuses(local, 1, at(end), "remote reaches outside");
  refuses(local, 1, at(-4), "remote reaches outside");
  refuses(local, 1, local, "remote reaches outside");
  EXPECT_EQ(WL_OK, windows.put(0, local, 1, at(end - 32), &error)) << error.message;
  const std::vector<int64_t> wide = {INT64_MAX / 2, 1};
  refuses(local, 1, changed(remote, [&](auto& t) { t.strides = wide.data(); }),
          "the size of remote overflows 63 bits");
  const wl_tensor_t repeated = changed(local, [&](auto& t) { t.strides = flat.data(); });
  EXPECT_EQ(WL_OK, windows.put(0, repeated, 1, remote, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.get(0, repeated, 1, remote, &error));
  EXPECT_TRUE(contains(error.message, "local: dimension 0"));

  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_put(nullptr, windows.handle(0), &local, 1, &remote, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_put(ranks.comms[0], nullptr, &local, 1, &remote, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            wl_notify(ranks.comms[0], elsewhere.handle(0), 1, elsewhere.signal(0), 1, &error));
  EXPECT_TRUE(contains(error.message, "notify: window belongs to another communicator"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.wait(0, 2, 0, 1, &error));
  EXPECT_TRUE(contains(error.message, "await: peer is 2; it must lie in [0, 2)"));
  int32_t reached = 0;
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.test(0, -1, 0, 1, &reached, &error));
  EXPECT_TRUE(contains(error.message, "test: peer is -1; it must lie in [0, 2)"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.wait(0, 1, 0, 1, &error, -1));
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.wait(0, 1, 1, 1, &error)) << "beyond the window";
  for (const uint64_t signal : {uint64_t{4}, uint64_t{192}, ~uint64_t{63}}) {
    EXPECT_EQ(WL_INVALID_ARGUMENT,
              wl_notify(ranks.comms[0], windows.handle(0), 1, signal, 1, &error));
    EXPECT_TRUE(contains(error.message, "notify: signal " + std::to_string(signal)));
  }
  EXPECT_EQ(WL_INVALID_ARGUMENT, windows.test(0, 1, 0, 1, nullptr, &error));
}

TEST(OneSided, ViewsOfARanksOwnPartMayInterleaveAndNotOverlap) {
  LocalRanks ranks(2);
  Windows windows(ranks, 256, 1);
  const std::vector<int64_t> shape = {4, 2}, rows = {2, 1}, columns = {4, 1};
  const auto at = [&](int64_t element, const std::vector<int64_t>& strides) {
    return wl_tensor_t{sizeof(wl_tensor_t), WL_F32,        2, 0, windows.at(0, 0) + 4 * element,
                       shape.data(),        strides.data()};
  };
  Error error;
  const std::string apart =
      "local (f32[4, 2]) overlaps remote (f32[4, 2]), which is of this rank itself";
  for (const auto& [local, remote] :
       {std::pair{at(0, rows), at(2, rows)}, {at(0, rows), at(0, rows)},
        {at(0, columns), at(1, columns)}, {at(0, rows), at(6, columns)}}) {
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.put(0, local, 0, remote, &error));
    EXPECT_TRUE(contains(error.message, "put: " + apart));
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.accumulate(0, local, 0, remote, &error));
    EXPECT_TRUE(contains(error.message, "accumulate: " + apart));
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.get(0, local, 0, remote, &error));
    EXPECT_TRUE(contains(error.message, "get: " + apart));
    EXPECT_EQ(WL_OK, windows.put(0, local, 1, remote, &error)) << error.message;
  }
  for (const auto& [local, remote] :
       {std::pair{at(0, columns), at(2, columns)}, {at(0, rows), at(8, columns)}}) {
    EXPECT_EQ(WL_OK, windows.put(0, local, 0, remote, &error)) << error.message;
    EXPECT_EQ(WL_OK, windows.get(0, local, 0, remote, &error)) << error.message;
  }
}

TEST(OneSided, ByADeviceTakesATargetThatHasGpus) {
  if (std::strcmp(wl_target(), "cuda") == 0) GTEST_SKIP() << "it has";
  static const int64_t kCount = 16;
  LocalRanks ranks(1);
  Windows windows(ranks, 64, 1);
  ranks.run([&](int, wl_comm_t* comm) {
    Error error;
    Bytes own(kCount);
    uint64_t hash = 0;
    const wl_tensor_t local = bytes(own.data(), &kCount);
    const wl_tensor_t remote = bytes(windows.at(0, 0), &kCount);
    wl_window_t* const window = windows.handle(0);
    EXPECT_EQ(wl_device_put(comm, window, &local, 0, &remote, &error), WL_UNSUPPORTED);
    EXPECT_TRUE(contains(error.message, "put by a device: target ")) << error.message;
    EXPECT_EQ(wl_device_get(comm, window, &local, 0, &remote, &error), WL_UNSUPPORTED);
    EXPECT_EQ(wl_device_accumulate(comm, window, &local, 0, &remote, &error), WL_UNSUPPORTED);
    EXPECT_EQ(wl_device_clear(comm, &local, &error), WL_UNSUPPORTED);
    EXPECT_EQ(wl_device_hash(comm, &local, 0, &hash, &error), WL_UNSUPPORTED);
    EXPECT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
  });
}

}  // namespace one_sided_test
}  // namespace windlass_test
