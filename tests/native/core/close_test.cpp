// SPDX-License-Identifier: Apache-2.0
// What a rank that leaves learns of operations in which it waited for nobody.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <algorithm>
#include <mutex>
#include <string>

namespace windlass_test {
namespace close_test {

using Body = std::function<int(int rank, wl_comm_t* comm, Error* error)>;

struct Left {
  std::vector<int> codes;  // of each rank's close
  std::vector<std::string> messages;
  std::vector<wl_error_t> errors;
  bool told = false;  // a call returned Mismatch

  int mismatches() const {
    return static_cast<int>(std::count(codes.begin(), codes.end(), WL_MISMATCH));
  }
};

// Ranks run the body, and close: as they come where `order` is empty, else in that order once all
// have run it.
Left leave(int n, int cores, const std::vector<int>& order, const Body& body) {
  LocalRanks ranks(n, 10'000 * kMs, 1, cores);
  Left left;
  left.codes.resize(static_cast<size_t>(n));
  left.messages.resize(static_cast<size_t>(n));
  left.errors.resize(static_cast<size_t>(n));
  std::mutex mutex;
  const auto close = [&](int rank) {
    Error error;
    const int code = wl_comm_close(ranks.comms[static_cast<size_t>(rank)], &error);
    std::lock_guard<std::mutex> lock(mutex);
    left.codes[static_cast<size_t>(rank)] = code;
    left.messages[static_cast<size_t>(rank)] = error.message;
    left.errors[static_cast<size_t>(rank)] = error;
    EXPECT_TRUE(code == WL_OK || code == WL_MISMATCH) << error.message;
    Error again;
    EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[static_cast<size_t>(rank)], &again));
  };
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const int code = body(rank, comm, &error);
    EXPECT_TRUE(code == WL_OK || code == WL_MISMATCH) << error.message;
    if (code == WL_MISMATCH) {
      std::lock_guard<std::mutex> lock(mutex);
      left.told = true;
    }
    if (order.empty()) close(rank);
  });
  for (const int rank : order) close(rank);
  return left;
}

std::vector<int> upTo(int n) {
  std::vector<int> order;
  for (int rank = 0; rank < n; ++rank) order.push_back(rank);
  return order;
}

std::vector<int> downFrom(int n) {
  std::vector<int> order = upTo(n);
  std::reverse(order.begin(), order.end());
  return order;
}

int broadcast(wl_comm_t* comm, int root, int32_t dtype, uint64_t count, Error* error) {
  uint64_t memory[64] = {};
  return broadcast(comm, memory, memory, count, dtype, root, WL_AUTO, 0, error);
}

TEST(Leaving, EveryRankThatWasTheRootOfItsOwnBroadcastIsToldOfIt) {
  for (const int n : {2, 3, 8}) {
    for (const int cores : {1, 64}) {
      for (const auto& order : {upTo(n), downFrom(n)}) {
        const Left left = leave(n, cores, order, [](int rank, wl_comm_t* comm, Error* error) {
          return broadcast(comm, rank, WL_U32, 4, error);
        });
        EXPECT_FALSE(left.told) << "the root of a small broadcast waits for nobody";
        EXPECT_EQ(n, left.mismatches()) << n << " ranks";
        for (const std::string& message : left.messages) {
          EXPECT_TRUE(contains(message.c_str(), "broadcast(4 x u32, root 0)"));
        }
        EXPECT_EQ(WL_OP_BROADCAST, left.errors[0].operation);
        EXPECT_EQ(1u, left.errors[0].sequence);
        EXPECT_EQ(2, left.errors[0].faulty_rank_count);
      }
      // As they come, the last one to leave sees the others, whatever else happens.
      const Left left = leave(n, cores, {}, [](int rank, wl_comm_t* comm, Error* error) {
        return broadcast(comm, rank, WL_U32, 4, error);
      });
      EXPECT_GE(left.mismatches(), 1) << n << " ranks";
    }
  }
}

TEST(Leaving, DTypesAndSizesOfSmallMessagesThatDifferReachTheRankThatHadReturned) {
  const std::pair<int32_t, uint64_t> odd[] = {{WL_F32, 4}, {WL_U32, 5}};
  for (const auto& [dtype, count] : odd) {
    for (const int cores : {1, 64}) {
      const Left left =
          leave(3, cores, upTo(3),
                [dtype = dtype, count = count](int rank, wl_comm_t* comm, Error* error) {
                  return rank == 0 ? broadcast(comm, 0, dtype, count, error)
                                   : broadcast(comm, 0, WL_U32, 4, error);
                });
      EXPECT_TRUE(left.told) << "the readers compare what they wait for";
      EXPECT_EQ(1, left.mismatches()) << "a rank is told once";
      EXPECT_EQ(WL_MISMATCH, left.codes[0]);
      EXPECT_TRUE(contains(left.messages[0].c_str(), "broadcast(4 x u32, root 0)"));
    }
  }
}

TEST(Leaving, AnOperationThatARankDidNotCallReachesTheLastToLeave) {
  for (const int n : {2, 5}) {
    for (const int cores : {1, 64}) {
      for (const auto& order : {upTo(n), downFrom(n)}) {
        const Left left = leave(n, cores, order, [n](int rank, wl_comm_t* comm, Error* error) {
          float in = 1;
          float out = 0;
          if (int code = callBarrier(comm, 0, error); code != WL_OK) return code;
          if (rank != n - 1) return int{WL_OK};
          return reduce(comm, &in, &out, 1, WL_F32, WL_SUM, 0, 0, error);
        });
        EXPECT_FALSE(left.told) << "a small reduce takes its input along";
        const auto last = static_cast<size_t>(order.back());
        EXPECT_EQ(WL_MISMATCH, left.codes[last]);
        const std::string caller = "rank " + std::to_string(n - 1);
        EXPECT_TRUE(contains(left.messages[last].c_str(),
                             caller + " calls reduce(1 x f32, sum, root 0)"));
        EXPECT_TRUE(contains(left.messages[last].c_str(), "closed the communicator without it"));
        EXPECT_EQ(WL_OP_REDUCE, left.errors[last].operation);
        EXPECT_EQ(2u, left.errors[last].sequence);
      }
    }
  }
}

TEST(Leaving, ARankWhoseCallReturnedTheMismatchIsToldNoMore) {
  const Left left = leave(2, 0, upTo(2), [](int rank, wl_comm_t* comm, Error* error) {
    if (int code = broadcast(comm, rank, WL_U32, 4, error); code != WL_OK) return code;
    return callBarrier(comm, 0, error);
  });
  EXPECT_TRUE(left.told);
  EXPECT_EQ(0, left.mismatches());
}

TEST(Leaving, RanksThatCalledTheSameAreToldNothing) {
  for (const int n : {1, 2, 7}) {
    for (const int cores : {1, 64}) {
      for (uint32_t calls = 0; calls < 4; ++calls) {
        const Left left = leave(n, cores, {}, [&](int, wl_comm_t* comm, Error* error) {
          int code = WL_OK;
          for (uint32_t i = 0; i < calls && code == WL_OK; ++i)
            code = broadcast(comm, 0, WL_U32, 4, error);
          return code;
        });
        EXPECT_FALSE(left.told);
        EXPECT_EQ(0, left.mismatches()) << left.messages[0];
      }
    }
  }
}

TEST(Leaving, AfterAnotherFailureThereIsNothingToTell) {
  LocalRanks ranks(2);
  Error error;
  EXPECT_EQ(WL_OK, broadcast(ranks.comms[0], 0, WL_U32, 4, &error));
  EXPECT_EQ(WL_OK, broadcast(ranks.comms[1], 1, WL_U32, 4, &error));
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[0], "enough", &error));
  EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[0], &error));
  EXPECT_EQ(WL_OK, wl_comm_close(ranks.comms[1], &error));
}

}  // namespace close_test
}  // namespace windlass_test
