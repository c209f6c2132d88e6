// SPDX-License-Identifier: Apache-2.0
// Processes whose ranks share whatever GPUs there are, of which one is killed at any moment of its
// collectives: the others are told who, and how long that took. Alone in its process, whose forks
// could not use a driver that it has opened itself.
#include <cstdio>

#include "tests/native/core/crew.h"

namespace windlass_test {
namespace gpu_kills_test {

class GpuProcessesKilled : public testing::TestWithParam<Crew> {};

// Rank r's element i is r + i; `count` of them, by all ranks.
int32_t sumOnce(const Mate& mate, size_t count, Error* error) {
  std::vector<int32_t> in(count), out(count, -1);
  for (size_t i = 0; i < count; ++i) in[i] = mate.rank + static_cast<int32_t>(i);
  const int32_t code = allReduce(mate.comm, in.data(), out.data(), count, WL_I32, WL_SUM,
                                 WL_TWO_PHASE, 60'000 * kMs, error);
  const int ranks = wl_comm_size(mate.comm);
  bool isRight = true;
  for (size_t i = 0; i < count; ++i)
    isRight = isRight && out[i] == ranks * (ranks - 1) / 2 + ranks * static_cast<int32_t>(i);
  EXPECT_OF_MATE(mate, code != WL_OK || isRight);
  return code;
}

TEST_P(GpuProcessesKilled, AreNamedAtOnce) {
  const Crew crew = GetParam();
  const int kills = longForm() ? 20 : 2;
  std::mt19937_64 random(seed());
  double worstMs = 0;
  for (int attempt = 0; attempt < kills && !HasFailure(); ++attempt) {
    const int victim = static_cast<int>(random() % static_cast<uint64_t>(crew.processes));
    const auto momentUs = static_cast<useconds_t>(random() % 300'000);
    Muster muster(crew, 60'000 * kMs);
    muster.run(
        [&](Mate& mate) {
          Error error;
          for (const size_t count : {1000u, 300'000u})
            EXPECT_OF_MATE(mate, sumOnce(mate, count, &error) == WL_OK);
          mate.board.at[mate.rank] = 1;
          int32_t code = WL_OK;
          while (code == WL_OK) code = sumOnce(mate, 300'000, &error);
          mate.board.sawNs[mate.rank] = wl_clock_ns();
          if (code != WL_PEER_LOST) std::fprintf(stderr, "%d: %s\n", code, error.message);
          EXPECT_OF_MATE(mate, code == WL_PEER_LOST);
          EXPECT_OF_MATE(mate, error.faulty_rank_count == crew.threads);
          for (int32_t i = 0; i < error.faulty_rank_count; ++i)
            EXPECT_OF_MATE(mate, crew.processOf(error.faulty_ranks[i]) == victim);
        },
        [&] {
          EXPECT_TRUE(muster.board().awaitAll(crew, 1));
          usleep(momentUs);
          muster.board().struckNs = wl_clock_ns();
          kill(muster.pid(victim), SIGKILL);
        });
    const Board& board = muster.board();
    EXPECT_EQ(board.wrong, 0) << "process " << victim << " after " << momentUs << " us";
    for (int rank = 0; rank < crew.ranks(); ++rank) {
      if (crew.processOf(rank) == victim) continue;
      worstMs = std::max(worstMs, static_cast<double>(board.sawNs[rank] - board.struckNs) / 1e6);
    }
    for (int process = 0; process < crew.processes; ++process) {
      EXPECT_EQ(muster.ends[static_cast<size_t>(process)], process == victim ? -SIGKILL : 0)
          << "process " << process;
    }
  }
  std::printf("# %d processes of %d ranks, %d kills: told after %.1f ms at most\n", crew.processes,
              crew.threads, kills, worstMs);
}

INSTANTIATE_TEST_SUITE_P(Crews, GpuProcessesKilled,
                         testing::Values(Crew{2, 1}, Crew{2, 2}, Crew{4, 1}));

}  // namespace gpu_kills_test
}  // namespace windlass_test
