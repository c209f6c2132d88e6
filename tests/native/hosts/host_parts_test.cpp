// SPDX-License-Identifier: Apache-2.0
// Parts of communicators that span hosts, which lie on one host or on several: they move, end apart
// from one another, and are there for all of their ranks or for none, whatever overtakes a split.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

#include "native/abi/handles.h"

namespace windlass_test {
namespace host_parts_test {

#define EXPECT_OF_SEAT(seat, condition)                                                  \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      ++(seat).board.wrong;                                                              \
      std::fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, (seat).rank, #condition); \
    }                                                                                    \
  } while (false)

uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

// All-gathers of `count` elements in a window of the part, whose ranks are `former` there; then a
// put to the next rank and its signal.
void useWindow(const Seat& seat, wl_comm_t* part, const std::vector<int>& former, uint64_t count) {
  const auto size = static_cast<size_t>(wl_comm_size(part));
  const int rank = wl_comm_rank(part);
  EXPECT_OF_SEAT(seat, size == former.size() && former[static_cast<size_t>(rank)] == seat.rank);
  if (size != former.size()) return;
  Error error;
  wl_window_t* window = nullptr;
  const uint64_t bytes = 4 * count * (size + 1);
  EXPECT_OF_SEAT(seat, wl_window_create(part, bytes, 0, &window, &error) == WL_OK);
  if (window == nullptr) return;
  auto* const in = static_cast<uint32_t*>(wl_window_address(window, rank));
  uint32_t* const out = in + count;
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < count; ++i) in[i] = broughtBy(seat.rank, round, i);
    EXPECT_OF_SEAT(seat, allGather(part, in, out, count, WL_U32, 0, &error) == WL_OK);
    for (size_t of = 0; of < size; ++of) {
      uint64_t bad = 0;
      for (uint64_t i = 0; i < count; ++i)
        bad += out[of * count + i] != broughtBy(former[of], round, i) ? 1 : 0;
      EXPECT_OF_SEAT(seat, bad == 0);
    }
  }
  wl_window_free(window);
}

class HostParts : public testing::TestWithParam<HostSpread> {
 protected:
  const HostSpread& spread() const { return GetParam(); }
};

std::vector<int> ranksOfColor(const HostSpread& spread, const std::function<int(int)>& color,
                              int own, bool isReversed) {
  std::vector<int> ranks;
  for (int rank = 0; rank < spread.ranks(); ++rank)
    if (color(rank) == color(own)) ranks.push_back(rank);
  if (isReversed) std::reverse(ranks.begin(), ranks.end());
  return ranks;
}

// Runs the colors in their order and in reverse. A sanitizer runs only the reverse, which covers
// the same.
TEST_P(HostParts, StartAndMove) {
  const HostSpread all = spread();
  const std::function<int(int)> colors[] = {
      [](int) { return 0; },
      [&](int rank) { return all.hostOf(rank); },
      [](int rank) { return rank % 2; },
      [](int rank) { return rank == 0 ? -1 : 0; },
      [&](int rank) { return all.hostOf(rank) == 0 ? 0 : 1 + rank % 2; },
  };
  HostCrew crew(all, 0, [&](Seat& seat) {
    Error error;
    for (int round = kSanitized && !longForm() ? 1 : 0; round < 2; ++round) {
      for (const auto& color : colors) {
        wl_comm_t* part = nullptr;
        const int own = color(seat.rank);
        const int key = round == 0 ? 0 : -seat.rank;
        const int32_t code = wl_comm_split(seat.comm, own, key, 0, &part, &error);
        if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", seat.rank, error.message);
        EXPECT_OF_SEAT(seat, code == WL_OK && (part == nullptr) == (own < 0));
        if (part == nullptr) continue;
        const std::vector<int> former = ranksOfColor(all, color, seat.rank, round == 1);
        bool isOnOneHost = true;
        for (const int rank : former)
          isOnOneHost = isOnOneHost && all.hostOf(rank) == all.hostOf(seat.rank);
        EXPECT_OF_SEAT(seat, (part->comm.group().hosts() == nullptr) == isOnOneHost);
        useWindow(seat, part, former, 100);
        useWindow(seat, part, former, 60'000);
        // Parts of parts.
        wl_comm_t* again = nullptr;
        EXPECT_OF_SEAT(seat, wl_comm_split(part, 0, 0, 0, &again, &error) == WL_OK);
        if (again != nullptr) useWindow(seat, again, former, 100);
        wl_comm_free(again);
        EXPECT_OF_SEAT(seat, wl_comm_close(part, &error) == WL_OK);
        wl_comm_free(part);
      }
    }
    EXPECT_OF_SEAT(seat, callBarrier(seat.comm, 0, &error) == WL_OK);
    seat.sees(WL_OK, error);
  });
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(all.all()), 0), crew.end());
}

TEST_P(HostParts, OneEndsAndTheOthersGoOn) {
  const HostSpread all = spread();
  HostCrew crew(all, 0, [&](Seat& seat) {
    Error error;
    wl_comm_t* first = nullptr;
    wl_comm_t* second = nullptr;
    EXPECT_OF_SEAT(seat, wl_comm_split(seat.comm, 0, 0, 0, &first, &error) == WL_OK);
    EXPECT_OF_SEAT(seat, wl_comm_split(seat.comm, 0, 0, 0, &second, &error) == WL_OK);
    if (first == nullptr || second == nullptr) return;
    if (seat.rank == all.ranks() - 1) wl_comm_abort(first, "this part alone", &error);
    EXPECT_OF_SEAT(seat, callBarrier(first, 0, &error) == WL_ABORTED);
    EXPECT_OF_SEAT(seat, contains(error.message, "this part alone"));
    EXPECT_OF_SEAT(seat, callBarrier(second, 0, &error) == WL_OK);
    EXPECT_OF_SEAT(seat, callBarrier(seat.comm, 0, &error) == WL_OK);
    wl_comm_free(first);
    wl_comm_free(second);
  });
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(all.all()), 0), crew.end());
}

// Ranks split over and over, and enter barriers in each part, until one of these ends all at some
// moment.
enum class Overtaker { kKilledProcess, kKilledHost, kAbort };

int32_t splitOnce(Seat& seat, Overtaker by, Error* error) {
  wl_comm_t* part = nullptr;
  int32_t code = wl_comm_split(seat.comm, 0, -seat.rank, 0, &part, error);
  EXPECT_OF_SEAT(seat, (code == WL_OK) == (part != nullptr));
  if (code == WL_OK) {
    code = callBarrier(part, 0, error);
    // A part that others never joined ends, and says so.
    const bool isTold = code == WL_ABORTED && contains(error->message, "never joined");
    EXPECT_OF_SEAT(seat, code == WL_OK || isTold || by != Overtaker::kAbort);
  }
  // A rank that waits for one that never joins waits until its deadline.
  EXPECT_OF_SEAT(seat, code != WL_DEADLINE_EXCEEDED);
  if (code == WL_DEADLINE_EXCEEDED)
    std::fprintf(stderr, "rank %d: %s\n", seat.rank, error->message);
  wl_comm_free(part);
  return code;
}

TEST_P(HostParts, WhateverOvertakesASplitLeavesNobodyWaiting) {
  std::mt19937_64 random(seed());
  const int rounds = faultRounds(1, 20);
  for (const Overtaker by :
       {Overtaker::kKilledProcess, Overtaker::kKilledHost, Overtaker::kAbort}) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      const auto momentUs = static_cast<useconds_t>(random() % 60'000);
      const int victim = static_cast<int>(random() % static_cast<uint64_t>(spread().all()));
      const Shared<std::atomic<bool>> ends;
      HostCrew crew(spread(), 0, [&](Seat& seat) {
        Error error;
        std::thread aborter;
        if (by == Overtaker::kAbort && seat.rank == spread().ranksOf(victim)[0]) {
          aborter = std::thread([&] {
            while (!*ends) usleep(50);
            Error none;
            wl_comm_abort(seat.comm, "the test's reason", &none);
          });
        }
        int32_t code = WL_OK;
        while (code == WL_OK) {
          code = splitOnce(seat, by, &error);
          if (code == WL_OK) ++seat.board.rounds[seat.rank];
        }
        if (aborter.joinable()) aborter.join();
        // The part may have told it first; the communicator does in a moment.
        await([&] { return (code = wl_comm_status(seat.comm, &error)) != WL_OK; }, 10'000 * kMs);
        seat.sees(code, error);
        if (!await([&] { return wl_comm_quiescent(seat.comm) != 0; }, 10'000 * kMs))
          ++seat.board.wrong;
      });
      ASSERT_TRUE(crew.awaitRounds(2));
      usleep(momentUs);
      std::vector<int32_t> gone;
      if (by == Overtaker::kKilledProcess) {
        crew.signal(victim, SIGKILL);
        gone = spread().ranksOf(victim);
      } else if (by == Overtaker::kKilledHost) {
        const int host = victim / spread().processes;
        crew.signalHost(host, SIGKILL);
        gone = spread().ranksOfHost(host);
      } else {
        *ends = true;
      }
      std::vector<int32_t> left;
      for (int32_t rank = 0; rank < spread().ranks(); ++rank)
        if (std::find(gone.begin(), gone.end(), rank) == gone.end()) left.push_back(rank);
      EXPECT_TRUE(crew.awaitSeen(left)) << "a rank hangs";
      for (const int32_t rank : left) {
        if (crew.fellInUcx(rank)) {
          std::printf("rank %d fell in UCX, which connected to a process that died\n", rank);
          continue;
        }
        const Seen& seen = crew.board().seen[rank];
        EXPECT_EQ(by == Overtaker::kAbort ? WL_ABORTED : WL_PEER_LOST, seen.code) << seen.message;
      }
      crew.end();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostParts,
                         testing::Values(HostSpread{2, 2, 1}, HostSpread{2, 1, 2}));
INSTANTIATE_TEST_SUITE_P(On4Hosts, HostParts, testing::Values(HostSpread{4, 1, 1}));

}  // namespace host_parts_test
}  // namespace windlass_test
