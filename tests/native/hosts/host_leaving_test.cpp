// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts that close, or stand still, while others go on: the process by which a
// host is reached, or hears others, is not the host.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_leaving_test {

// Ranks 0 and 1 on one host, 2 and 3 on the other, a process each: 2 reaches the first by 0's.
constexpr HostSpread kPairs = {2, 2, 1};

// When the test has had its look.
struct Cue {
  std::atomic<bool> isGiven;
};

void awaitCue(const Shared<Cue>& cue) {
  EXPECT_TRUE(await([&] { return cue->isGiven.load(); }, 30'000 * kMs));
}

class HostLeaving : public testing::Test {};

// Each host reaches the other by who has left, and hears of it there.
TEST_F(HostLeaving, OthersLiveOnWhereThoseLeaveThatTheyReachHostsBy) {
  const Shared<Cue> cue;
  HostCrew crew(kPairs, kSilenceNs, [&](Seat& seat) {
    Error error;
    const int32_t code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (seat.rank == 0 || seat.rank == 3) return seat.sees(code, error);
    awaitCue(cue);
    seat.sees(wl_comm_status(seat.comm, &error), error);
  });
  ASSERT_TRUE(crew.awaitSeen({0, 3}));
  usleep(3'000'000);  // they end after one, and a host counts as silent after half of one
  cue->isGiven = true;
  ASSERT_TRUE(crew.awaitSeen({1, 2}));
  for (const int rank : {1, 2})
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  EXPECT_EQ(std::vector<int>(4, 0), crew.end());
}

// After rank 3 has left, only the process of rank 0 hears host 1.
TEST_F(HostLeaving, AProcessThatStandsStillHasNoOtherHostCountAsSilent) {
  const Shared<Cue> cue;
  HostCrew crew(kPairs, kSilenceNs, [&](Seat& seat) {
    Error error;
    const int32_t code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (seat.rank == 3) return seat.sees(code, error);
    awaitCue(cue);
    seat.sees(wl_comm_status(seat.comm, &error), error);
  });
  ASSERT_TRUE(crew.awaitSeen({3}));
  usleep(2'000'000);
  crew.signal(0, SIGSTOP);
  usleep(2'000'000);
  crew.signal(0, SIGCONT);
  usleep(300'000);
  cue->isGiven = true;
  ASSERT_TRUE(crew.awaitSeen({0, 1, 2}));
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  EXPECT_EQ(std::vector<int>(4, 0), crew.end());
}

// Rank 3 has a connection of its own to rank 0's process, and hears by rank 2's that it has left.
TEST_F(HostLeaving, WhoHasLeftIsNotLostToThoseWhoHearOfItLate) {
  const Shared<Cue> cue;
  HostCrew crew(kPairs, 0, [&](Seat& seat) {
    Error error;
    const int64_t count = 64 << 10;
    std::vector<uint32_t> in(4 * count, 1), out(4 * count);
    int32_t code = callBarrier(seat.comm, 0, &error);
    if (code == WL_OK)
      code = allToAll(seat.comm, in.data(), out.data(), count, WL_U32, WL_AUTO, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (seat.rank == 0) {
      usleep(500'000);  // in which rank 2's process stops
      return seat.sees(code, error);
    }
    awaitCue(cue);
    seat.sees(code == WL_OK ? wl_comm_status(seat.comm, &error) : code, error);
  });
  ASSERT_TRUE(crew.awaitRounds(1));
  usleep(200'000);
  crew.signal(2, SIGSTOP);
  ASSERT_TRUE(await([&] { return crew.hasEnded(0); }));
  usleep(300'000);
  crew.signal(2, SIGCONT);
  usleep(1'500'000);
  cue->isGiven = true;
  ASSERT_TRUE(crew.awaitSeen({0, 1, 2, 3}));
  for (const int rank : {0, 1, 2, 3})
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  EXPECT_EQ(std::vector<int>(4, 0), crew.end());
}

// Each of two processes that hear a host is asleep half of the time.
TEST_F(HostLeaving, ASilentHostIsFoundByProcessesThatStandStillInTurns) {
  const Shared<Cue> cue;
  HostCrew crew(kPairs, 2'000 * kMs, [&](Seat& seat) {
    Error error;
    int32_t code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    while (code == WL_OK && !cue->isGiven) {
      usleep(1000);
      code = wl_comm_status(seat.comm, &error);
    }
    seat.sees(code, error);
  });
  ASSERT_TRUE(crew.awaitRounds(1));
  usleep(1'000'000);
  crew.signalHost(1, SIGSTOP);
  const int64_t struck = wl_clock_ns();
  while (crew.board().seen[0].code < 0 && wl_clock_ns() - struck < 30'000 * kMs) {
    for (const int process : {0, 1}) {
      crew.signal(process, SIGSTOP);
      usleep(450'000);
      crew.signal(process, SIGCONT);
      usleep(500'000);
    }
  }
  crew.signalHost(1, SIGCONT);
  cue->isGiven = true;
  EXPECT_TRUE(crew.awaitSeen({0, 1}));
  for (const int rank : {0, 1})
    EXPECT_EQ(WL_PEER_LOST, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  crew.end(false);
}

// Closes during a call that waits for others several times, in any of its waits.
TEST_F(HostLeaving, ACallThatAnotherThreadsCloseEndsSaysSo) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < faultRounds(10, 200); ++round) {
    const auto momentUs = static_cast<useconds_t>(random() % 2'000);
    HostCrew crew(kPairs, 0, [&](Seat& seat) {
      Error error;
      int32_t code = callBarrier(seat.comm, 0, &error);
      std::thread closer([&] {
        if (seat.rank != 1) return;
        usleep(momentUs);
        Error none;
        if (wl_comm_close(seat.comm, &none) != WL_OK) ++seat.board.wrong;
      });
      while (code == WL_OK) {
        wl_window_t* window = nullptr;
        code = wl_window_create(seat.comm, 4096, 0, &window, &error);
        wl_window_free(window);
      }
      seat.sees(code, error);
      closer.join();
    });
    ASSERT_TRUE(crew.awaitSeen({0, 1, 2, 3}));
    for (const int rank : {0, 1, 2, 3})
      EXPECT_EQ(rank == 1 ? WL_CLOSED : WL_ABORTED, crew.board().seen[rank].code)
          << crew.board().seen[rank].message;
    EXPECT_EQ(std::vector<int>(4, 0), crew.end());
    if (HasFailure()) break;
  }
}

// Rank 2 puts to rank 1 before rank 0 has left, or only after it.
class HostLeavingAmongMoves : public testing::TestWithParam<bool> {};

TEST_P(HostLeavingAmongMoves, NamesWhoHasLeft) {
  const bool isBefore = GetParam();
  const Shared<Cue> cue;
  HostCrew crew(kPairs, kSilenceNs, [&](Seat& seat) {
    Error error;
    wl_window_t* window = nullptr;
    int32_t code = wl_window_create(seat.comm, 4096, 0, &window, &error);
    const auto put = [&] {
      const int64_t shape[] = {64};
      const int64_t strides[] = {1};
      uint8_t bytes[64] = {};
      const wl_tensor_t here = {sizeof(wl_tensor_t), WL_U8, 1, 0, bytes, shape, strides};
      wl_tensor_t there = here;
      there.data = wl_window_address(window, seat.rank);
      return wl_put(seat.comm, window, &here, 1, &there, &error);
    };
    if (code == WL_OK && seat.rank == 2 && isBefore) code = put();
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (seat.rank == 0) {
      seat.sees(code, error);
      wl_window_free(window);
      return;
    }
    awaitCue(cue);
    // Its first one is refused, and told to all.
    if (seat.rank == 2 && !isBefore) code = put();
    const int64_t start = wl_clock_ns();
    while (code == WL_OK && seat.rank != 2 && wl_clock_ns() - start < 15'000 * kMs) {
      code = wl_comm_status(seat.comm, &error);
      usleep(1000);
    }
    if (seat.rank == 2 && isBefore) code = wl_comm_status(seat.comm, &error);
    seat.sees(code, error);
    wl_window_free(window);
  });
  ASSERT_TRUE(crew.awaitSeen({0}));
  EXPECT_EQ(WL_OK, crew.board().seen[0].code) << crew.board().seen[0].message;
  usleep(2'000'000);
  cue->isGiven = true;
  ASSERT_TRUE(crew.awaitSeen({1, 2, 3}));
  for (const int rank : {1, 2, 3}) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(WL_ABORTED, seen.code) << "rank " << rank << ": " << seen.message;
    EXPECT_EQ(std::vector<int32_t>{0}, seen.faultyRanks()) << seen.message;
  }
  EXPECT_EQ(std::vector<int>(4, 0), crew.end());
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostLeavingAmongMoves, testing::Bool());

}  // namespace host_leaving_test
}  // namespace windlass_test
