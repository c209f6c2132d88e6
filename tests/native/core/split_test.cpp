// SPDX-License-Identifier: Apache-2.0
// Splits that an abort, a close or a deadline overtakes: a communicator that some ranks got and
// others did not ends at once, and names one of the latter.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <algorithm>
#include <string>

namespace windlass_test {
namespace split_test {

constexpr int64_t kChildDeadline = 20'000 * kMs;

enum class End { kAbort, kClose, kDeadline };

struct Overtaken {
  int torn = 0;  // splits that some ranks got and others did not
};

// Ranks split over and over, each child met by a barrier, until the communicator ends at a random
// moment.
void overtake(int n, int cores, End end, bool subgroup, std::mt19937_64& random, Overtaken* seen) {
  const auto ranks64 = static_cast<size_t>(n);
  LocalRanks ranks(n, kChildDeadline, 1, cores);
  std::vector<int32_t> all;
  for (int rank = 0; rank < n; ++rank) all.push_back(n - 1 - rank);
  const int victim = static_cast<int>(random() % ranks64);
  const auto delay = static_cast<int64_t>(random() % 400'000);
  std::vector<int> children(ranks64);
  std::atomic<int> started{0};
  std::thread ender([&] {
    while (started < n) std::this_thread::yield();
    spinFor(delay);
    Error error;
    wl_comm_t* comm = ranks.comms[static_cast<size_t>(victim)];
    if (end == End::kAbort) wl_comm_abort(comm, "the test", &error);
    if (end == End::kClose) wl_comm_close(comm, &error);
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    ++started;
    Error error;
    for (int turn = 0;; ++turn) {
      wl_comm_t* child = nullptr;
      const int64_t deadline =
          end == End::kDeadline && rank == victim && turn == 3 ? 1 + delay / 20 : 0;
      const int code = subgroup ? wl_comm_subgroup(comm, all.data(), static_cast<uint32_t>(n),
                                                   deadline, &child, &error)
                              : wl_comm_split(comm, 0, 0, deadline, &child, &error);
      EXPECT_EQ(code == WL_OK, child != nullptr) << error.message;
      // Nobody waits for a rank that never joined until the deadline.
      EXPECT_TRUE(code != WL_DEADLINE_EXCEEDED || end == End::kDeadline) << error.message;
      if (code != WL_OK) break;
      ++children[static_cast<size_t>(rank)];
      const int met = callBarrier(child, 0, &error);
      if (met != WL_OK) {
        EXPECT_EQ(WL_ABORTED, met) << error.message;
        EXPECT_EQ(1, error.faulty_rank_count) << error.message;
        EXPECT_TRUE(contains(error.message, "never joined"));
        EXPECT_TRUE(contains(error.message, subgroup ? "its subgroup failed" : "its split failed"));
      }
      wl_comm_free(child);
      if (end == End::kDeadline && turn > 3) break;
    }
  });
  ender.join();
  seen->torn += *std::max_element(children.begin(), children.end()) !=
                        *std::min_element(children.begin(), children.end())
                    ? 1
                    : 0;
}

TEST(Split, OvertakenByTheEndOfItsCommunicatorLeavesNobodyWaiting) {
  std::mt19937_64 random(seed());
  Overtaken seen;
  for (const End end : {End::kAbort, End::kClose, End::kDeadline}) {
    for (int round = 0; round < 400 / slow() && !testing::Test::HasFailure(); ++round) {
      overtake(2 + static_cast<int>(random() % 4), random() % 2 == 0 ? 1 : 64, end, round % 2 == 0,
               random, &seen);
    }
  }
  std::printf("%d splits reached some ranks alone\n", seen.torn);
}

}  // namespace split_test
}  // namespace windlass_test
