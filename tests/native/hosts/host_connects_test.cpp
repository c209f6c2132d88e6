// SPDX-License-Identifier: Apache-2.0
// Processes that go, or are cut off, while others make connections to them: an all-to-all of long
// parts makes those that its ranks lack.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_connects_test {

constexpr uint64_t kCount = uint64_t{512} << 10;  // of each part

class HostConnects : public testing::TestWithParam<HostSpread> {
 protected:
  const HostSpread& spread() const { return GetParam(); }

  // The first all-to-all of each rank, with all ranks in it.
  void exchange(Seat& seat) const {
    Error error;
    const uint64_t ranks = static_cast<uint64_t>(spread().ranks());
    std::vector<int32_t> in(ranks * kCount, 1), out(ranks * kCount);
    const int32_t met = callBarrier(seat.comm, 0, &error);
    seat.board.rounds[seat.rank] = 1;
    int32_t code = met;
    while (code == WL_OK)
      code = allToAll(seat.comm, in.data(), out.data(), kCount, WL_I32, WL_AUTO, 0, &error);
    seat.sees(code, error);
    await([&] { return wl_comm_quiescent(seat.comm) != 0; }, 10'000 * kMs);
  }

  // Checks that all other ranks name some of the lost ones, before the deadline of their calls.
  void expectNamed(HostCrew& crew, const std::vector<int32_t>& lost) const {
    std::vector<int32_t> others;
    for (int32_t rank = 0; rank < spread().ranks(); ++rank)
      if (std::find(lost.begin(), lost.end(), rank) == lost.end()) others.push_back(rank);
    ASSERT_TRUE(crew.awaitSeen(others)) << "a rank hangs";
    for (const int32_t rank : others) {
      if (crew.fellInUcx(rank)) return;
      const Seen& seen = crew.board().seen[rank];
      EXPECT_EQ(WL_PEER_LOST, seen.code) << "rank " << rank << ": " << seen.message;
      EXPECT_FALSE(seen.faultyRanks().empty());
      for (const int32_t faultyRank : seen.faultyRanks())
        EXPECT_NE(lost.end(), std::find(lost.begin(), lost.end(), faultyRank)) << seen.message;
    }
  }
};

TEST_P(HostConnects, AKilledProcessIsNamedByWhoConnectsToIt) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < faultRounds(3, 200) && !HasFailure(); ++round) {
    const auto momentUs = static_cast<useconds_t>(random() % 10'000);
    HostCrew crew(spread(), 0, [&](Seat& seat) { exchange(seat); });
    ASSERT_TRUE(crew.awaitRounds(1));
    usleep(momentUs);
    crew.signal(1, SIGKILL);
    expectNamed(crew, spread().ranksOf(1));
    crew.end(false);
  }
}

TEST_P(HostConnects, ACutLinkEndsThem) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  std::mt19937_64 random(seed());
  for (int round = 0; round < faultRounds(2, 20) && !HasFailure(); ++round) {
    const auto momentUs = static_cast<useconds_t>(random() % 8'000);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { exchange(seat); });
    ASSERT_TRUE(crew.awaitRounds(1));
    usleep(momentUs);
    ASSERT_TRUE(setLink(0, false));
    expectNamed(crew, spread().ranksOfHost(0));
    crew.end(false);
    ASSERT_TRUE(setLink(0, true));
    ASSERT_TRUE(awaitLink(0));
  }
}

INSTANTIATE_TEST_SUITE_P(On4Hosts, HostConnects, testing::Values(HostSpread{4, 2, 1}));

}  // namespace host_connects_test
}  // namespace windlass_test
