// SPDX-License-Identifier: Apache-2.0
// Moves of versions that ranks name as they enter: what moves where they agree, and that nothing
// does where they don't.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/transfer/views.h"
#include "windlass/kernel.h"

namespace windlass_test {
namespace move_test {

// Each rank takes the whole source of its right neighbour, in one phase.
class Neighbours {
 public:
  Neighbours(int rank, wl_comm_t* comm, int64_t count, int64_t phase = 0)
      : source_(viewOf(count)), target_(viewOf(count)) {
    const int next = (rank + 1) % wl_comm_size(comm);
    Words sources, targets;
    source_.describe(&sources);
    target_.describe(&targets);
    const Words chunks = {phase, 0, WL_U32, WL_SUM, 1, 1, count, 0, next, 0, 0};
    const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, 1);
    Error error;
    EXPECT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer_, &error)) << error.message;
  }
  ~Neighbours() { wl_transfer_free(transfer_); }
  Neighbours(const Neighbours&) = delete;

  wl_transfer_t* transfer() const { return transfer_; }
  void fill(uint32_t value) { fill(&source_, value); }
  void clear(uint32_t value) { fill(&target_, value); }
  // True if the target holds only this value.
  bool holds(uint32_t value) const {
    const auto* first = reinterpret_cast<const uint32_t*>(target_.memory.data());
    return std::all_of(first, first + target_.memory.size() / 4,
                       [&](uint32_t each) { return each == value; });
  }

 private:
  static View viewOf(int64_t count) {
    return {WL_U32, {count}, {1}, std::vector<uint8_t>(static_cast<size_t>(count) * 4)};
  }
  static void fill(View* view, uint32_t value) {
    auto* first = reinterpret_cast<uint32_t*>(view->memory.data());
    std::fill(first, first + view->memory.size() / 4, value);
  }

  View source_;
  View target_;
  wl_transfer_t* transfer_ = nullptr;
};

struct Shape {
  int ranks;
  int cores;
  int64_t count;  // of elements: few that one thread moves, or many that all do
};

class Moves : public testing::TestWithParam<Shape> {
 protected:
  const int n_ = GetParam().ranks;
  const int64_t count_ = GetParam().count;
  const int rounds_ = std::max(4, 60 / slow());
};

TEST_P(Moves, TheVersionThatSomeRanksName) {
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    for (int round = 0; round < rounds_; ++round) {
      own.fill(static_cast<uint32_t>(round * n_ + rank));
      const bool names = rank == round % n_ || rank == 0;
      int64_t version = names ? int64_t{round} << 40 : WL_ANY_VERSION;
      Error error;
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
      EXPECT_EQ(int64_t{round} << 40, version);
      EXPECT_TRUE(own.holds(static_cast<uint32_t>(round * n_ + (rank + 1) % n_)));
      EXPECT_EQ(static_cast<uint64_t>(round) + 1, wl_transfer_begun(own.transfer()));
    }
  });
}

TEST_P(Moves, NothingWhereVersionsDifferAndGoOn) {
  if (n_ == 1) return;
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    own.clear(1);
    for (int round = 0; round < rounds_; ++round) {
      own.fill(2);
      const int other = 1 + round % (n_ - 1);
      int64_t version = rank == 0 ? 5 : rank == other ? 6 : WL_ANY_VERSION;
      Error error;
      ASSERT_EQ(WL_MISMATCH, wl_transfer_move(own.transfer(), 7, &version, 0, &error));
      EXPECT_EQ("rank 0 names version 5, rank " + std::to_string(other) +
                    " version 6; nothing has moved",
                std::string(error.message));
      ASSERT_EQ(2, error.faulty_rank_count);
      EXPECT_EQ(0, error.faulty_ranks[0]);
      EXPECT_EQ(other, error.faulty_ranks[1]);
      EXPECT_EQ(WL_ANY_VERSION, version);
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      EXPECT_TRUE(own.holds(1));
      version = rank == other ? 6 : WL_ANY_VERSION;
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
      EXPECT_TRUE(own.holds(2));
      own.clear(1);
    }
  });
}

TEST_P(Moves, NothingWhereTransfersDifferAndGoOn) {
  if (n_ == 1) return;
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    Neighbours larger(rank, comm, 3 * count_ + 50'000, int64_t{2} * windlass::kMostPhases);
    own.clear(1);
    larger.clear(1);
    own.fill(2);
    larger.fill(2);
    for (int round = 0; round < rounds_; ++round) {
      const bool isOther = rank == 1 + round % (n_ - 1);
      const Neighbours& mine = isOther ? larger : own;
      int64_t version = 5;
      Error error;
      ASSERT_EQ(WL_MISMATCH,
                wl_transfer_move(mine.transfer(), isOther ? 4 : 3, &version, 0, &error));
      EXPECT_TRUE(contains(error.message, "rank 0 is at transfer 3 of those that were registered"));
      EXPECT_TRUE(contains(error.message, " at transfer 4"));
      EXPECT_EQ(WL_ANY_VERSION, version);
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      EXPECT_TRUE(own.holds(1));
      EXPECT_TRUE(larger.holds(1));
    }
    int64_t version = 6;
    Error error;
    ASSERT_EQ(WL_OK, wl_transfer_move(larger.transfer(), 4, &version, 0, &error)) << error.message;
    EXPECT_TRUE(larger.holds(2));
  });
}

TEST_P(Moves, NothingWhereARankHasFinishedWhateverOthersName) {
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    own.clear(1);
    own.fill(2);
    for (int round = 0; round < rounds_; ++round) {
      const int last = round % n_;
      int64_t version = rank == last ? WL_FINISHED : rank == 0 ? 5 : WL_ANY_VERSION;
      Error error;
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), rank == last ? 3 : 7, &version, 0, &error))
          << error.message;
      EXPECT_EQ(WL_FINISHED, version);
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      EXPECT_TRUE(own.holds(1));
    }
    int64_t version = 6;
    Error error;
    ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
    EXPECT_TRUE(own.holds(2));
  });
}

TEST_P(Moves, NothingWhereARankTakesNoPartAndTellPeersWhatItAbortsWith) {
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  const int absent = n_ - 1;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    own.clear(1);
    int64_t version = rank == absent ? WL_NO_VERSION : 5;
    Error error;
    const int code = wl_transfer_move(own.transfer(), 7, &version, 0, &error);
    EXPECT_TRUE(own.holds(1));
    EXPECT_EQ(n_ == 1 ? WL_ANY_VERSION : 5, version);
    if (rank == absent) {
      EXPECT_EQ(WL_INVALID_ARGUMENT, code);
      EXPECT_EQ(WL_OK, wl_comm_abort(comm, "its view was closed", &error));
    } else {
      EXPECT_EQ(WL_ABORTED, code);
      EXPECT_TRUE(contains(error.message, "its view was closed"));
      ASSERT_EQ(1, error.faulty_rank_count);
      EXPECT_EQ(absent, error.faulty_ranks[0]);
    }
  });
}

TEST_P(Moves, NothingUntilAllRanksHaveCome) {
  if (n_ == 1) return;
  LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
  std::atomic<wl_transfer_t*> waiting{nullptr};
  std::atomic<bool> enters{false};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, count_);
    int64_t version = 5;
    Error error;
    if (rank == 0) {
      waiting = own.transfer();
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
      EXPECT_EQ(1u, wl_transfer_begun(own.transfer()));
    } else if (rank == 1) {
      while (waiting == nullptr) usleep(100);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(0u, wl_transfer_begun(waiting));
      enters = true;
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
    } else {
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error));
  });
  EXPECT_TRUE(enters);
}

// However it is asked meanwhile.
TEST(MovesBegun, AreCountedOnce) {
  LocalRanks ranks(1, 20'000 * kMs, 1, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Neighbours own(rank, comm, 4);
    std::atomic<uint64_t> started{0};
    std::atomic<bool> over{false};
    std::thread asks([&] {
      for (uint64_t last = 0; !over;) {
        const uint64_t begun = wl_transfer_begun(own.transfer());
        EXPECT_GE(begun, last);
        EXPECT_LE(begun, started);
        last = begun;
      }
    });
    const int moves = std::min(400'000 / slow(), repetitions(20'000, 400'000));
    for (int move = 0; move < moves; ++move) {
      ++started;
      int64_t version = 5;
      Error error;
      ASSERT_EQ(WL_OK, wl_transfer_move(own.transfer(), 7, &version, 0, &error)) << error.message;
    }
    over = true;
    asks.join();
    EXPECT_EQ(static_cast<uint64_t>(moves), wl_transfer_begun(own.transfer()));
  });
}

// A rank that fails keeps its source until the communicator is quiescent, and then changes it.
TEST(SourcesThatAreHashed, StayUntilNobodyReadsThem) {
  const int64_t count = (longForm() && kSlow == 1 ? int64_t{16} : int64_t{1}) << 20;
  for (int round = 0; round < std::max(kSlow > 1 ? 2 : 5, 20 / slow()); ++round) {
    LocalRanks ranks(2, 20'000 * kMs, 1, 2);
    std::atomic<int> ready{0};
    std::atomic<bool> hashes{false};
    ranks.run([&](int rank, wl_comm_t* comm) {
      Neighbours own(rank, comm, count);
      own.fill(7);
      Error error;
      ++ready;
      while (ready < 2) std::this_thread::yield();
      if (rank == 1) {
        while (!hashes) std::this_thread::yield();
        spinFor(round * 300'000);
        EXPECT_EQ(WL_OK, wl_comm_abort(comm, "the test", &error));
        while (wl_comm_quiescent(comm) == 0) std::this_thread::yield();
        own.fill(8);
        ++ready;
        return;
      }
      const int32_t peer = 1;
      const int64_t start = 0, length = count;
      uint64_t first = 0, hash = 0;
      int code = WL_OK;
      for (int turn = 0; code == WL_OK; ++turn) {
        code = wl_transfer_hash(own.transfer(), 0, &peer, 1, &start, &length, WL_SUM, WL_U32,
                                WL_U32, 0, &hash, &error);
        if (turn == 0) first = hash;
        EXPECT_TRUE(code != WL_OK || first == hash);
        hashes = true;
      }
      EXPECT_EQ(WL_ABORTED, code) << error.message;
      while (ready < 3) usleep(100);
    });
  }
}

// The last rank comes as the others' deadlines pass.
TEST_P(Moves, NothingToARankThatIsToldSo) {
  if (n_ == 1) return;
  std::mt19937 random(static_cast<uint32_t>(seed()));
  int moved = 0, told = 0;
  for (int round = 0; round < std::max(10, std::min(400 / slow(), repetitions(20, 400))); ++round) {
    LocalRanks ranks(n_, 20'000 * kMs, 1, GetParam().cores);
    std::atomic<int> ready{0};
    std::atomic<int> counts[2] = {};
    std::vector<std::unique_ptr<Neighbours>> all(static_cast<size_t>(n_));
    std::vector<int64_t> versions(static_cast<size_t>(n_), 5);
    const int64_t late = 300'000 + random() % 400'000;
    ranks.run([&](int rank, wl_comm_t* comm) {
      auto& own = all[static_cast<size_t>(rank)];
      own = std::make_unique<Neighbours>(rank, comm, count_);
      own->clear(1);
      own->fill(2);
      ++ready;
      while (ready < n_) std::this_thread::yield();
      const int64_t start = wl_clock_ns();
      while (rank == 0 && wl_clock_ns() - start < late) std::this_thread::yield();
      Error error;
      int64_t& version = versions[static_cast<size_t>(rank)];
      const int code = wl_transfer_move(own->transfer(), 7, &version,
                                        rank == 0 ? 0 : 500'000, &error);
      EXPECT_TRUE(code == WL_OK || code == WL_DEADLINE_EXCEEDED) << error.message;
      EXPECT_TRUE(code != WL_OK || version == 5);
    });
    for (size_t rank = 0; rank < all.size(); ++rank) {
      ++counts[versions[rank] == 5 ? 0 : 1];
      EXPECT_TRUE(versions[rank] == 5 || all[rank]->holds(1)) << "rank " << rank;
    }
    moved += counts[0];
    told += counts[1];
  }
  std::printf("%d ranks were moved to, %d told that nothing has moved\n", moved, told);
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int n : {1, 2, 5})
    for (const int cores : {1, 64})
      for (const int64_t count : {60, 40'000}) all.push_back({n, cores, count});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Moves, testing::ValuesIn(shapes()));

}  // namespace move_test
}  // namespace windlass_test
