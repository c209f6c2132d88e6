// SPDX-License-Identifier: Apache-2.0
// New communicators of those that a failure leaves on several hosts: of processes and hosts that
// are killed, also while the others shrink, of ranks that stay away, and of connections that broke.
#include <deque>
#include <mutex>

#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_shrink_test {

#define EXPECT_OF_SEAT(seat, condition)                                                  \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      ++(seat).board.wrong;                                                              \
      std::fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, (seat).rank, #condition); \
    }                                                                                    \
  } while (false)

constexpr uint64_t kCount = uint64_t{256} << 10;
constexpr int64_t kDeadlineNs = 10'000 * kMs;
// Longer than a crew waits for its ranks: a shrink that waits for a missing rank is a rank that
// hangs.
constexpr int64_t kEndlessNs = 120'000 * kMs;

uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

std::vector<int> ranksWithout(const HostSpread& spread, const std::vector<int32_t>& without) {
  std::vector<int> ranks;
  for (int rank = 0; rank < spread.ranks(); ++rank)
    if (std::find(without.begin(), without.end(), rank) == without.end()) ranks.push_back(rank);
  return ranks;
}

// As long as this process lives: ranks beside may still be at what one has given to an operation
// that failed, and none may wait for them before it shrinks.
void keep(std::vector<uint32_t> memory) {
  static std::mutex mutex;
  static std::deque<std::vector<uint32_t>> all;
  std::lock_guard<std::mutex> lock(mutex);
  all.push_back(std::move(memory));
}

// An all-reduce of `count` elements of ranks that are `former` in the whole.
int32_t reduce(const Seat& seat, wl_comm_t* comm, const std::vector<int>& former, uint64_t count,
               uint32_t round, Error* error) {
  std::vector<uint32_t> in(count), out(count);
  for (uint64_t i = 0; i < count; ++i) in[i] = broughtBy(seat.rank, round, i);
  const int32_t code =
      allReduce(comm, in.data(), out.data(), count, WL_U32, WL_SUM, WL_AUTO, 0, error);
  uint64_t bad = 0;
  for (uint64_t i = 0; code == WL_OK && i < count; ++i) {
    uint32_t sum = 0;
    for (const int rank : former) sum += broughtBy(rank, round, i);
    bad += out[i] != sum ? 1 : 0;
  }
  EXPECT_OF_SEAT(seat, bad == 0);
  if (code != WL_OK) keep(std::move(in));
  if (code != WL_OK) keep(std::move(out));
  return code;
}

// Until one fails, long ones and short ones by turns.
int32_t reduceUntilFailure(const Seat& seat, wl_comm_t* comm, const std::vector<int>& former,
                           Error* error) {
  int32_t code = WL_OK;
  for (uint32_t round = 0; code == WL_OK; ++round) {
    code = reduce(seat, comm, former, round % 3 == 0 ? kCount : 16, round, error);
    if (code == WL_OK) ++seat.board.rounds[seat.rank];
  }
  return code;
}

// Rank `aborter` aborts after a barrier with the others. The abort may overtake the barrier.
void enterAndAbort(const Seat& seat, int aborter, const std::vector<int>& all, Error* error) {
  const int32_t met = callBarrier(seat.comm, 0, error);
  EXPECT_OF_SEAT(seat, met == WL_OK || met == WL_ABORTED);
  if (seat.rank == aborter) wl_comm_abort(seat.comm, "start anew", error);
  EXPECT_OF_SEAT(seat, reduceUntilFailure(seat, seat.comm, all, error) == WL_ABORTED);
}

// That a new communicator is of just those, and works.
void expectWorks(const Seat& seat, wl_comm_t* comm, const std::vector<int>& former) {
  Error error;
  const auto rank = static_cast<size_t>(wl_comm_rank(comm));
  EXPECT_OF_SEAT(seat, static_cast<size_t>(wl_comm_size(comm)) == former.size());
  if (static_cast<size_t>(wl_comm_size(comm)) != former.size()) return;
  EXPECT_OF_SEAT(seat, former[rank] == seat.rank);
  for (uint32_t round = 0; round < 4; ++round) {
    const uint64_t count = round % 2 == 0 ? kCount : 16;
    const int32_t code = reduce(seat, comm, former, count, round, &error);
    if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", seat.rank, error.message);
    EXPECT_OF_SEAT(seat, code == WL_OK);
  }
}

int32_t put(const Seat& seat, const wl_window_t* window, int to, std::vector<unsigned char>& data,
            Error* error) {
  static const int64_t kOne = 1;
  const auto count = static_cast<int64_t>(data.size());
  const wl_tensor_t local = {sizeof local, WL_U8, 1, 0, data.data(), &count, &kOne};
  wl_tensor_t remote = local;
  remote.data = wl_window_address(window, seat.rank);
  return wl_put(seat.comm, window, &local, to, &remote, error);
}

// nullptr where it is none. Nobody is missed till the deadline, unless a test says so.
wl_comm_t* shrink(const Seat& seat, wl_comm_t* of, int64_t deadlineNs = kEndlessNs) {
  Error error;
  wl_comm_t* shrunk = nullptr;
  const int32_t code = wl_comm_shrink(of, deadlineNs, &shrunk, &error);
  if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", seat.rank, error.message);
  EXPECT_OF_SEAT(seat, code == WL_OK);
  return shrunk;
}

class HostShrinks : public testing::TestWithParam<HostSpread> {
 protected:
  static int rounds() { return faultRounds(2, 20); }
  const HostSpread& spread() const { return GetParam(); }

  void expectEnds(HostCrew& crew, const std::vector<int>& killed) const {
    std::vector<int> ends(static_cast<size_t>(spread().all()), 0);
    for (const int process : killed) ends[static_cast<size_t>(process)] = -SIGKILL;
    EXPECT_EQ(ends, crew.end());
  }

  // Whether one of those ended otherwise than the test had it: then more are gone.
  static bool anyFell(const HostCrew& crew, const std::vector<int32_t>& ranks) {
    bool any = false;
    for (const int32_t rank : ranks) {
      if (!crew.fellInUcx(rank)) continue;
      std::printf("rank %d fell in UCX, which connected to a process that died\n", rank);
      any = true;
    }
    return any;
  }

  // Kills these while the others work, which shrink, use the new one, abort that and shrink again.
  void killAndShrink(const std::vector<int>& killed) const {
    std::vector<int32_t> gone;
    for (const int process : killed)
      for (const int32_t rank : spread().ranksOf(process)) gone.push_back(rank);
    const std::vector<int> all = ranksWithout(spread(), {});
    const std::vector<int> left = ranksWithout(spread(), gone);
    const Shared<std::atomic<size_t>> used;  // the new one, by so many
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      Error error;
      const int32_t code = reduceUntilFailure(seat, seat.comm, all, &error);
      EXPECT_OF_SEAT(seat, code == WL_PEER_LOST);
      wl_comm_t* const shrunk = shrink(seat, seat.comm);
      seat.sees(shrunk == nullptr ? code : WL_OK, error);
      if (shrunk == nullptr) return;
      expectWorks(seat, shrunk, left);
      // The old one gives no second one.
      wl_comm_t* second = nullptr;
      EXPECT_OF_SEAT(seat, wl_comm_shrink(seat.comm, 0, &second, &error) == WL_INVALID_ARGUMENT);
      ++*used;
      await([&] { return *used == left.size(); });
      if (wl_comm_rank(shrunk) == 0) wl_comm_abort(shrunk, "once more", &error);
      EXPECT_OF_SEAT(seat, reduceUntilFailure(seat, shrunk, left, &error) == WL_ABORTED);
      wl_comm_t* const again = shrink(seat, shrunk);
      wl_comm_free(shrunk);
      if (again != nullptr) expectWorks(seat, again, left);
      wl_comm_free(again);
    });
    ASSERT_TRUE(crew.awaitRounds(3));
    const int64_t struck = wl_clock_ns();
    for (const int process : killed) crew.signal(process, SIGKILL);
    const std::vector<int32_t> waiting(left.begin(), left.end());
    EXPECT_TRUE(crew.awaitSeen(waiting)) << "a rank hangs";
    int64_t last = 0;
    for (const int32_t rank : waiting)
      last = std::max(last, crew.board().seen[rank].atNs - struck);
    if (anyFell(crew, waiting)) {
      crew.end(false);
      return;
    }
    std::printf("shown: from a kill to the new communicator: %.1f ms\n",
                static_cast<double>(last) / 1e6);
    expectEnds(crew, killed);
  }
};

TEST_P(HostShrinks, AfterAProcessWasKilled) {
  // The long form kills each rank in turn. The short form kills the first and the last, which are
  // on different hosts.
  const int step = longForm() ? 1 : spread().all() - 1;
  for (int victim = 0; victim < spread().all(); victim += step) killAndShrink({victim});
}

TEST_P(HostShrinks, AfterAHostWasKilled) {
  if (spread().processes == 1) GTEST_SKIP() << "a host has one process";
  for (int host = 0; host < spread().hosts; ++host) {
    std::vector<int> killed;
    for (int i = 0; i < spread().processes; ++i) killed.push_back(host * spread().processes + i);
    killAndShrink(killed);
  }
}

// All live, and end operations with bytes on their way, so that connections are gone.
TEST_P(HostShrinks, AfterAnAbortAmongLongOperations) {
  const std::vector<int> all = ranksWithout(spread(), {});
  for (int round = 0; round < rounds(); ++round) {
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      Error error;
      const int aborter = round * (spread().ranks() - 1) % spread().ranks();
      std::thread aborts([&] {
        if (seat.rank != aborter) return;
        await([&] { return seat.board.rounds[seat.rank] >= 3; });
        usleep(static_cast<useconds_t>(round * 370 % 2000));
        Error none;
        wl_comm_abort(seat.comm, "start anew", &none);
      });
      // A put of a large window to the next host, which ends in the middle.
      wl_window_t* window = nullptr;
      std::vector<unsigned char> data(uint64_t{16} << 20);
      EXPECT_OF_SEAT(seat, wl_window_create(seat.comm, data.size(), 0, &window, &error) == WL_OK);
      const int next = (seat.rank + spread().processes * spread().threads) % spread().ranks();
      int32_t code = WL_OK;
      while (code == WL_OK) {
        code = reduce(seat, seat.comm, all, kCount, 1, &error);
        if (code == WL_OK) ++seat.board.rounds[seat.rank];
        if (code == WL_OK) code = put(seat, window, next, data, &error);
      }
      EXPECT_OF_SEAT(seat, code == WL_ABORTED || code == WL_PEER_LOST);
      aborts.join();
      wl_comm_t* const shrunk = shrink(seat, seat.comm);
      if (shrunk != nullptr) expectWorks(seat, shrunk, all);
      wl_window_free(window);
      wl_comm_free(shrunk);
    });
    expectEnds(crew, {});
  }
}

TEST_P(HostShrinks, ARankThatDoesNotComeByTheDeadlineIsLeftOut) {
  const std::vector<int> all = ranksWithout(spread(), {});
  for (const int late : {0, spread().ranks() - 1}) {
    const std::vector<int> others = ranksWithout(spread(), {late});
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      Error error;
      enterAndAbort(seat, 1, all, &error);
      if (seat.rank != late) {
        // All of these ranks have arrived before the first of them waits for another.
        const int expected = static_cast<int>(others.size());
        ++seat.board.gathered;
        EXPECT_OF_SEAT(seat, await([&] { return seat.board.gathered == expected; }));
        int64_t unset = 0;
        seat.board.beganNs.compare_exchange_strong(unset, wl_clock_ns());
        wl_comm_t* const shrunk = shrink(seat, seat.comm, 2'000 * kMs);
        EXPECT_OF_SEAT(seat, wl_clock_ns() - seat.board.beganNs >= 1'900 * kMs);
        if (shrunk != nullptr) expectWorks(seat, shrunk, others);
        seat.sees(WL_OK, error);
        EXPECT_OF_SEAT(seat, await([&] { return seat.board.seen[late].code >= 0; }));
        wl_comm_free(shrunk);
        return;
      }
      EXPECT_OF_SEAT(seat, await([&] {
        return std::all_of(others.begin(), others.end(),
                           [&](int rank) { return seat.board.seen[rank].code >= 0; });
      }));
      wl_comm_t* none = nullptr;
      EXPECT_OF_SEAT(seat, wl_comm_shrink(seat.comm, 0, &none, &error) == WL_ABORTED);
      EXPECT_OF_SEAT(seat, contains(error.message, "was left out") && none == nullptr);
      EXPECT_OF_SEAT(seat, wl_comm_status(seat.comm, &error) == WL_ABORTED);
      EXPECT_OF_SEAT(seat, contains(error.message, "was left out"));
      seat.sees(WL_ABORTED, error);
    });
    expectEnds(crew, {});
  }
}

TEST_P(HostShrinks, NobodyWaitsForARankThatHasClosed) {
  const std::vector<int> all = ranksWithout(spread(), {});
  for (const int leaver : {0, spread().ranks() - 1}) {
    const std::vector<int> others = ranksWithout(spread(), {leaver});
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      Error error;
      EXPECT_OF_SEAT(seat, reduce(seat, seat.comm, all, 16, 0, &error) == WL_OK);
      seat.board.rounds[seat.rank] = 1;
      if (seat.rank == leaver) {
        // Whoever misses it ends what others are in by then.
        EXPECT_OF_SEAT(seat, await([&] {
          return std::all_of(all.begin(), all.end(),
                             [&](int rank) { return seat.board.rounds[rank] >= 1; });
        }));
        EXPECT_OF_SEAT(seat, wl_comm_close(seat.comm, &error) == WL_OK);
        wl_comm_t* none = nullptr;
        EXPECT_OF_SEAT(seat, wl_comm_shrink(seat.comm, 0, &none, &error) == WL_CLOSED);
        // Its process lives on, and says so.
        await([&] {
          return std::all_of(others.begin(), others.end(),
                             [&](int rank) { return seat.board.seen[rank].code >= 0; });
        });
        return;
      }
      EXPECT_OF_SEAT(seat, reduceUntilFailure(seat, seat.comm, all, &error) == WL_ABORTED);
      wl_comm_t* const shrunk = shrink(seat, seat.comm);
      seat.sees(WL_OK, error);
      if (shrunk != nullptr) expectWorks(seat, shrunk, others);
      wl_comm_free(shrunk);
    });
    expectEnds(crew, {});
  }
}

// Shrinks until a communicator works. Returns its ranks, one bit each, after using it. 0: the rank
// got none, and got the reason.
uint32_t shrinkUntilItWorks(const Seat& seat, uint32_t doomed, Error* error) {
  wl_comm_t* comm = seat.comm;
  uint32_t members = 0;
  for (int tries = 0; tries < 10 && (members == 0 || (members & doomed) != 0); ++tries) {
    wl_comm_t* shrunk = nullptr;
    const int32_t code = wl_comm_shrink(comm, kDeadlineNs, &shrunk, error);
    members = 0;
    if (code == WL_DEADLINE_EXCEEDED) continue;
    if (code != WL_OK) break;
    if (comm != seat.comm) wl_comm_free(comm);
    comm = shrunk;
    // Who died after all had agreed is named there.
    const uint32_t own = 1u << seat.rank;
    int32_t used = WL_OK;
    do {
      usleep(100);
      used = callCollective(comm, WL_OP_ALL_REDUCE, &own, 1, &members, 1, WL_U32, WL_SUM, WL_AUTO,
                            0, 0, 0, error);
    } while (used == WL_OK && (members & doomed) != 0);
    if (used != WL_OK) members = 0;
  }
  if (comm != seat.comm) wl_comm_free(comm);
  return members;
}

TEST_P(HostShrinks, WhileProcessesAreKilled) {
  std::mt19937_64 random(seed());
  const std::vector<int> all = ranksWithout(spread(), {});
  for (int round = 0; round < (longForm() ? 40 : 2); ++round) {
    const auto momentUs = static_cast<useconds_t>(random() % 8'000);
    const int victim = static_cast<int>(random() % static_cast<uint64_t>(spread().all()));
    const std::vector<int32_t> gone = spread().ranksOf(victim);
    const std::vector<int> left = ranksWithout(spread(), gone);
    uint32_t doomed = 0;
    for (const int32_t rank : gone) doomed |= 1u << rank;
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      Error error;
      enterAndAbort(seat, spread().ranks() - 1, all, &error);
      seat.board.rounds[seat.rank] = 1'000'000;
      await([&] {
        return std::all_of(all.begin(), all.end(),
                           [&](int rank) { return seat.board.rounds[rank] >= 1'000'000; });
      });
      const uint32_t members = shrinkUntilItWorks(seat, doomed, &error);
      if (members == 0) std::fprintf(stderr, "rank %d: %s\n", seat.rank, error.message);
      seat.sees(static_cast<int32_t>(members), error);
    });
    ASSERT_TRUE(crew.awaitRounds(1'000'000));
    usleep(momentUs);
    crew.signal(victim, SIGKILL);
    const std::vector<int32_t> waiting(left.begin(), left.end());
    EXPECT_TRUE(crew.awaitSeen(waiting)) << "a rank hangs";
    size_t complete = 0;
    const bool fell = anyFell(crew, waiting);
    for (const int32_t rank : waiting) {
      if (crew.fellInUcx(rank)) continue;
      const auto members = static_cast<uint32_t>(crew.board().seen[rank].code);
      if (members == 0) continue;
      EXPECT_EQ(0u, members & doomed);
      EXPECT_NE(0u, members & 1u << rank);
      // Its members have the same one.
      for (const int32_t other : waiting) {
        if ((members >> other & 1) == 0 || fell) continue;
        EXPECT_EQ(static_cast<int32_t>(members), crew.board().seen[other].code);
      }
      complete += members == ((1u << spread().ranks()) - 1 - doomed) ? 1 : 0;
    }
    EXPECT_TRUE(fell || complete == waiting.size())
        << "round " << round << ", process " << victim << " after " << momentUs << " us";
    if (fell)
      crew.end(false);
    else
      expectEnds(crew, {victim});
  }
}

// It stands still, the others go on, and now it runs again.
TEST_P(HostShrinks, AHostThatWasPausedIsLeftOut) {
  const std::vector<int> all = ranksWithout(spread(), {});
  for (const int victim : {0, spread().hosts - 1}) {
    const std::vector<int32_t> paused = spread().ranksOfHost(victim);
    const std::vector<int> others = ranksWithout(spread(), paused);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) {
      Error error;
      const int32_t code = reduceUntilFailure(seat, seat.comm, all, &error);
      if (std::find(paused.begin(), paused.end(), seat.rank) == paused.end()) {
        EXPECT_OF_SEAT(seat, code == WL_PEER_LOST);
        wl_comm_t* const shrunk = shrink(seat, seat.comm);
        seat.sees(code, error);
        // While the other ones come back.
        await([&] {
          return std::all_of(paused.begin(), paused.end(),
                             [&](int32_t rank) { return seat.board.seen[rank].code >= 0; });
        });
        if (shrunk != nullptr) expectWorks(seat, shrunk, others);
        wl_comm_free(shrunk);
        return;
      }
      // The rank gets the loss, or the abort that follows from it if that arrives first.
      EXPECT_OF_SEAT(seat, code == WL_PEER_LOST || code == WL_ABORTED);
      wl_comm_t* none = nullptr;
      const int32_t told = wl_comm_shrink(seat.comm, kDeadlineNs, &none, &error);
      EXPECT_OF_SEAT(seat, told == WL_ABORTED && contains(error.message, "was left out"));
      if (told != WL_ABORTED)
        std::fprintf(stderr, "rank %d: %d: %s\n", seat.rank, told, error.message);
      wl_comm_free(none);
      seat.sees(told, error);
    });
    ASSERT_TRUE(crew.awaitRounds(3));
    crew.signalHost(victim, SIGSTOP);
    EXPECT_TRUE(crew.awaitSeen(std::vector<int32_t>(others.begin(), others.end())));
    crew.signalHost(victim, SIGCONT);
    expectEnds(crew, {});
  }
}

// It stands still, the others go on and end, with bytes on their way to it; now it runs again.
TEST(HostShrink, AHostThatFindsTheOthersGoneIsLeftOut) {
  const HostSpread spread = {2, 1, 1};
  for (int round = 0; round < faultRounds(2, 20); ++round) {
    HostCrew crew(spread, kSilenceNs, [&](Seat& seat) {
      Error error;
      std::vector<uint32_t> in(16 * kCount, 1), out(16 * kCount);
      int32_t code = WL_OK;
      while (code == WL_OK) {
        code = allReduce(seat.comm, in.data(), out.data(), in.size(), WL_U32, WL_SUM, WL_AUTO, 0,
                         &error);
        if (code == WL_OK) ++seat.board.rounds[seat.rank];
      }
      EXPECT_OF_SEAT(seat, code == WL_PEER_LOST || seat.rank == 1);
      wl_comm_t* shrunk = nullptr;
      code = wl_comm_shrink(seat.comm, kDeadlineNs, &shrunk, &error);
      EXPECT_OF_SEAT(seat, code == (seat.rank == 0 ? WL_OK : WL_ABORTED));
      EXPECT_OF_SEAT(seat, seat.rank == 0 || contains(error.message, "was left out"));
      if (shrunk != nullptr) expectWorks(seat, shrunk, {0});
      wl_comm_free(shrunk);
      seat.sees(code, error);
    });
    ASSERT_TRUE(crew.awaitRounds(2));
    crew.signalHost(1, SIGSTOP);
    EXPECT_TRUE(crew.awaitSeen({0}));
    EXPECT_TRUE(await([&] { return crew.hasEnded(0); }));
    crew.signalHost(1, SIGCONT);
    EXPECT_EQ(std::vector<int>(2, 0), crew.end());
  }
}

// Each side goes on without the other, because neither can know which side is cut off.
TEST_P(HostShrinks, AfterALinkWasCut) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  const std::vector<int> all = ranksWithout(spread(), {});
  for (int round = 0; round < rounds(); ++round) {
    const int victim = round % spread().hosts;
    const std::vector<int32_t> beyond = spread().ranksOfHost(victim);
    const std::vector<int> within(beyond.begin(), beyond.end());
    const std::vector<int> others = ranksWithout(spread(), beyond);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) {
      Error error;
      EXPECT_OF_SEAT(seat,
                     reduceUntilFailure(seat, seat.comm, all, &error) == WL_PEER_LOST);
      wl_comm_t* const shrunk = shrink(seat, seat.comm);
      const bool isBeyond = spread().hostOf(seat.rank) == victim;
      if (shrunk != nullptr && !isBeyond) expectWorks(seat, shrunk, others);
      if (shrunk != nullptr && isBeyond) expectWorks(seat, shrunk, within);
      seat.sees(WL_OK, error);
      wl_comm_free(shrunk);
    });
    ASSERT_TRUE(crew.awaitRounds(3));
    ASSERT_TRUE(setLink(victim, false));
    EXPECT_TRUE(crew.awaitSeen(std::vector<int32_t>(all.begin(), all.end())));
    expectEnds(crew, {});
    ASSERT_TRUE(setLink(victim, true));
    ASSERT_TRUE(awaitLink(victim));
  }
}

std::vector<HostSpread> spreads(std::vector<HostSpread> some, const HostSpread& more) {
  if (longForm()) some.push_back(more);
  return some;
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostShrinks,
                         testing::ValuesIn(spreads({{2, 2, 1}, {2, 1, 2}}, {2, 2, 2})));
// What 4 hosts shrink to has 3.
INSTANTIATE_TEST_SUITE_P(On3Hosts, HostShrinks,
                         testing::ValuesIn(longForm() ? spreads({{3, 1, 1}}, {3, 2, 1})
                                                      : std::vector<HostSpread>()));
INSTANTIATE_TEST_SUITE_P(On4Hosts, HostShrinks, testing::ValuesIn(spreads({{4, 1, 1}}, {4, 2, 2})));

}  // namespace host_shrink_test
}  // namespace windlass_test
