// SPDX-License-Identifier: Apache-2.0
// Faults of ranks on several hosts: every survivor gets the same error, which names the right
// ranks, in time, and nobody hangs; a new group meets after. Prints how long each took to show.
#include "tests/native/hosts/host_crew.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace {

constexpr int64_t kSilenceNs = 500 * kMs;
// Beats of every 100 ms, looks as often, and what a loaded machine adds.
constexpr int64_t kSilenceShowsNs = kSilenceNs + 500 * kMs;
constexpr int64_t kKillShowsNs = 50 * kMs;

int rounds() {
  return longForm() ? 20 : 4;
}

// What ranks do when the fault comes.
enum Doing { kBarriers, kSmall, kLarge, kMixed, kDoings };

constexpr uint64_t kLargeCount = 200'000;

uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

// One round; counts what came wrong.
int32_t step(const Seat& seat, Doing doing, uint32_t round, std::vector<uint32_t>& in,
             std::vector<uint32_t>& out, Error* error) {
  if (doing == kMixed) doing = static_cast<Doing>(round % kMixed);
  if (doing == kBarriers) return wl_barrier(seat.comm, 0, error);
  const int n = wl_comm_size(seat.comm);
  const uint64_t count = doing == kSmall ? 16 : kLargeCount;
  for (uint64_t i = 0; i < count; ++i) in[i] = broughtBy(seat.rank, round, i);
  const int32_t code = allReduce(seat.comm, in.data(), out.data(), count, WL_U32, WL_SUM, WL_AUTO,
                                 0, error);
  for (uint64_t i = 0; code == WL_OK && i < count; i += 97) {
    uint32_t sum = 0;
    for (int rank = 0; rank < n; ++rank) sum += broughtBy(rank, round, i);
    if (out[i] != sum) ++seat.board.wrong;
  }
  return code;
}

// Rounds until one fails, or there were so many.
void work(const Seat& seat, Doing doing, uint32_t most) {
  std::vector<uint32_t> in(kLargeCount), out(kLargeCount);
  Error error;
  int32_t code = WL_OK;
  for (uint32_t round = 0; code == WL_OK && round < most; ++round) {
    code = step(seat, doing, round, in, out, &error);
    if (code == WL_OK) ++seat.board.rounds[seat.rank];
  }
  seat.sees(code, error);
  // Until then ranks of this host may read what this one brought.
  if (!await([&] { return wl_comm_quiescent(seat.comm) != 0; }, 10'000 * kMs)) ++seat.board.wrong;
}

constexpr uint32_t kEndless = 1u << 30;

// A group that nothing happens to.
void expectMeeting(const HostSpread& spread, int64_t silenceNs = 0) {
  HostCrew crew(spread, silenceNs, [](Seat& seat) { work(seat, kMixed, 9); });
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread.all()), 0), crew.end());
  for (int rank = 0; rank < spread.ranks(); ++rank)
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
}

std::vector<int32_t> allBut(const HostSpread& spread, const std::vector<int32_t>& gone) {
  std::vector<int32_t> left;
  for (int32_t rank = 0; rank < spread.ranks(); ++rank)
    if (std::find(gone.begin(), gone.end(), rank) == gone.end()) left.push_back(rank);
  return left;
}

// How long faults took to show on the survivors that saw them last, over rounds.
class Times {
 public:
  Times(const char* what, int64_t limitNs) : what_(what), limitNs_(limitNs) {}
  ~Times() {
    std::sort(worst_.begin(), worst_.end());
    if (worst_.empty()) return;
    std::printf("shown: %s, %zu times: after %.1f ms, median %.1f, at most %.1f\n", what_,
                worst_.size(), ms(worst_.front()), ms(worst_[worst_.size() / 2]),
                ms(worst_.back()));
    // Other work on the machine only adds time.
    EXPECT_LE(worst_.front(), limitNs_) << what_;
  }
  void add(int64_t ns) { worst_.push_back(ns); }

 private:
  static double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

  const char* what_;
  const int64_t limitNs_;
  std::vector<int64_t> worst_;
};

// That those saw that code; when the last did, after `struckNs`.
int64_t expectSeen(HostCrew& crew, const std::vector<int32_t>& survivors, int32_t code,
                   int64_t struckNs) {
  EXPECT_TRUE(crew.awaitSeen(survivors)) << "a rank hangs";
  int64_t last = 0;
  for (const int32_t rank : survivors) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(code, seen.code) << "rank " << rank << ": " << seen.message;
    last = std::max(last, seen.atNs - struckNs);
  }
  return last;
}

void expectCulprits(HostCrew& crew, const std::vector<int32_t>& survivors,
                    const std::vector<int32_t>& culprits) {
  for (const int32_t rank : survivors) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(culprits, seen.culprits()) << "rank " << rank << ": " << seen.message;
  }
}

class HostFaults : public testing::TestWithParam<HostSpread> {
 protected:
  const HostSpread& spread() const { return GetParam(); }

  // Waits for rounds of work on all ranks, and some more.
  static void letWork(HostCrew& crew, int round) {
    ASSERT_TRUE(crew.awaitRounds(static_cast<uint32_t>(3 + round)));
    usleep(static_cast<useconds_t>(round * 370 % 2000));
  }
};

TEST_P(HostFaults, AKilledProcessIsNamedByItsRanks) {
  Times times("a killed process", kKillShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const auto doing = static_cast<Doing>(round % kDoings);
    HostCrew crew(spread(), 0, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().all();
    const int64_t struck = wl_clock_ns();
    crew.signal(victim, SIGKILL);
    const std::vector<int32_t> survivors = allBut(spread(), spread().ranksOf(victim));
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectCulprits(crew, survivors, spread().ranksOf(victim));
    std::vector<int> ends(static_cast<size_t>(spread().all()), 0);
    ends[static_cast<size_t>(victim)] = -SIGKILL;
    EXPECT_EQ(ends, crew.end());
  }
  expectMeeting(spread());
}

// Its processes end one after the other: who sees the first names that one's ranks.
TEST_P(HostFaults, AKilledHostIsNamedByRanksOfIts) {
  Times times("a killed host", kKillShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const auto doing = static_cast<Doing>(round % kDoings);
    HostCrew crew(spread(), 0, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    const std::vector<int32_t> dead = spread().ranksOfHost(victim);
    const int64_t struck = wl_clock_ns();
    crew.signalHost(victim, SIGKILL);
    const std::vector<int32_t> survivors = allBut(spread(), dead);
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    for (const int32_t rank : survivors) {
      const Seen& seen = crew.board().seen[rank];
      const std::vector<int32_t> culprits = seen.culprits();
      EXPECT_FALSE(culprits.empty()) << seen.message;
      for (const int32_t culprit : culprits)
        EXPECT_EQ(victim, spread().hostOf(culprit)) << "rank " << rank << ": " << seen.message;
    }
    crew.end();
  }
  expectMeeting(spread());
}

TEST_P(HostFaults, APausedHostIsNamedAndHearsOfIt) {
  Times times("a paused host", kSilenceShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const auto doing = static_cast<Doing>(round % kDoings);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    const std::vector<int32_t> paused = spread().ranksOfHost(victim);
    const int64_t struck = wl_clock_ns();
    crew.signalHost(victim, SIGSTOP);
    const std::vector<int32_t> survivors = allBut(spread(), paused);
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectCulprits(crew, survivors, paused);
    crew.signalHost(victim, SIGCONT);
    expectSeen(crew, paused, WL_PEER_LOST, struck);
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectMeeting(spread());
}

TEST_P(HostFaults, ACutLinkIsNamedByTheHostBehindIt) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  Times times("a cut link", kSilenceShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const auto doing = static_cast<Doing>(round % kDoings);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    const std::vector<int32_t> beyond = spread().ranksOfHost(victim);
    const int64_t struck = wl_clock_ns();
    ASSERT_TRUE(setLink(victim, false));
    const std::vector<int32_t> survivors = allBut(spread(), beyond);
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectCulprits(crew, survivors, beyond);
    // Those behind it name others, of whom they hear nothing.
    times.add(expectSeen(crew, beyond, WL_PEER_LOST, struck));
    for (const int32_t rank : beyond) {
      for (const int32_t culprit : crew.board().seen[rank].culprits())
        EXPECT_NE(victim, spread().hostOf(culprit)) << crew.board().seen[rank].message;
    }
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
    ASSERT_TRUE(setLink(victim, true));
    expectMeeting(spread());
  }
}

// Nothing fails: what is late or lost comes again.
TEST_P(HostFaults, ALinkThatDelaysAndLosesCarriesAll) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  for (const char* how : {"delay 100ms", "loss 1%"}) {
    const std::string device = std::getenv("WINDLASS_UCX_NET_DEVICES");
    const std::string shape = "tc -n " + namespaces()[0] + " qdisc add dev " + device +
                              " root netem " + how + " 2>/dev/null";
    if (std::system(shape.c_str()) != 0)
      GTEST_SKIP() << "this kernel has no netem, or this machine no tc: " << shape;
    for (int round = 0; round < rounds(); ++round) expectMeeting(spread(), 2'000 * kMs);
    const std::string restore = "tc -n " + namespaces()[0] + " qdisc del dev " + device + " root";
    ASSERT_EQ(0, std::system(restore.c_str()));
  }
}

TEST_P(HostFaults, AnAbortReachesEveryHost) {
  Times times("an abort", kKillShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const int aborter = round % spread().ranks();
    const auto doing = static_cast<Doing>(round % kDoings);
    const Shared<std::atomic<int64_t>> struck;
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      if (seat.rank != aborter) return work(seat, doing, kEndless);
      work(seat, doing, static_cast<uint32_t>(3 + round));
      usleep(2000);
      Error error;
      *struck = wl_clock_ns();
      if (wl_comm_abort(seat.comm, "the test's reason", &error) != WL_OK) ++seat.board.wrong;
    });
    const std::vector<int32_t> others = allBut(spread(), {aborter});
    ASSERT_TRUE(crew.awaitSeen(others));
    times.add(expectSeen(crew, others, WL_ABORTED, *struck));
    expectCulprits(crew, others, {aborter});
    for (const int32_t rank : others)
      EXPECT_TRUE(contains(crew.board().seen[rank].message, "the test's reason"));
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectMeeting(spread());
}

TEST_P(HostFaults, AClosedHandleIsNamedToThoseWhoWaitForIt) {
  Times times("a closed handle", kKillShowsNs);
  for (int round = 0; round < rounds(); ++round) {
    const int leaver = round % spread().ranks();
    const auto doing = static_cast<Doing>(round % kDoings);
    const Shared<std::atomic<int64_t>> struck;
    HostCrew crew(spread(), 0, [&](Seat& seat) {
      if (seat.rank != leaver) return work(seat, doing, kEndless);
      work(seat, doing, static_cast<uint32_t>(3 + round));
      usleep(2000);
      Error error;
      *struck = wl_clock_ns();
      if (wl_comm_close(seat.comm, &error) != WL_OK) ++seat.board.wrong;
    });
    const std::vector<int32_t> others = allBut(spread(), {leaver});
    ASSERT_TRUE(crew.awaitSeen(others));
    times.add(expectSeen(crew, others, WL_ABORTED, *struck));
    expectCulprits(crew, others, {leaver});
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectMeeting(spread());
}

std::vector<HostSpread> spreads(std::vector<HostSpread> some, const HostSpread& more) {
  if (longForm()) some.push_back(more);
  return some;
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostFaults,
                         testing::ValuesIn(spreads({{2, 2, 1}, {2, 1, 2}}, {2, 1, 1})));
INSTANTIATE_TEST_SUITE_P(On4Hosts, HostFaults,
                         testing::ValuesIn(spreads({{4, 1, 1}}, {4, 2, 2})));

}  // namespace
}  // namespace windlass_test
