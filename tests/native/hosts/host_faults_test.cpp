// SPDX-License-Identifier: Apache-2.0
// Faults of ranks on several hosts: every survivor gets the same error before its deadline, which
// names the right ranks, keeps the last version that it got, and ends with nothing left; a new
// group starts after. Prints how long each fault took to show, and asserts no time.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace host_faults_test {

int rounds() {
  return faultRounds(2, 20);
}

// Work of the ranks when the fault strikes.
enum Doing { kSmall, kLarge, kVersions, kMixed, kBarriers, kDoings };

constexpr uint64_t kLargeCount = 200'000;
constexpr int64_t kVersionCount = 30'011;  // elements of each rank's part of a version

uint32_t broughtBy(int rank, uint32_t round, uint64_t i) {
  return stamp(round, static_cast<uint32_t>(rank), 0, i);
}

// Versions of a tensor that all ranks send to all, as a link does it: each is written to one of two
// halves while the other keeps the one before, which counts until all have the new one.
class Versions {
 public:
  explicit Versions(const Seat& seat) : seat_(seat) {}
  ~Versions() {
    for (const Half& half : halves_) wl_transfer_free(half.transfer);
  }
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  // Before the first.
  int32_t open(Error* error) {
    const int n = wl_comm_size(seat_.comm);
    const Words chunks = gatherChunks(n, kVersionCount);
    own_.resize(kVersionCount);
    const Words source = rowBinding(own_.data(), kVersionCount);
    for (Half& half : halves_) {
      half.all.resize(own_.size() * static_cast<size_t>(n));
      const Words target = rowBinding(half.all.data(), n * kVersionCount);
      const wl_transfer_config_t config =
          configOf(source, 1, target, 1, chunks, static_cast<uint64_t>(n));
      const int32_t code = wl_transfer_create(seat_.comm, &config, 0, &half.transfer, error);
      if (code != WL_OK) return code;
    }
    return WL_OK;
  }

  int32_t move(uint32_t version, Error* error) {
    Half& next = halves_[moved_ % 2];
    for (uint64_t i = 0; i < own_.size(); ++i) own_[i] = broughtBy(seat_.rank, version, i);
    int64_t named = version;
    const int32_t code = wl_transfer_move(next.transfer, 1 + moved_ % 2, &named, 0, error);
    if (code != WL_OK) return code;
    if (named != version) ++seat_.board.wrong;
    next.version = version;
    ++moved_;
    seat_.board.versions[seat_.rank] = moved_;
    return WL_OK;
  }

  // Whether the last version is there as a whole.
  bool isWhole() const {
    if (moved_ == 0) return true;
    const Half& last = halves_[(moved_ - 1) % 2];
    for (size_t at = 0; at < last.all.size(); ++at) {
      const auto rank = static_cast<int>(at / own_.size());
      if (last.all[at] != broughtBy(rank, last.version, at % own_.size())) return false;
    }
    return true;
  }

 private:
  struct Half {
    std::vector<uint32_t> all;
    wl_transfer_t* transfer = nullptr;
    uint32_t version = 0;
  };

  const Seat& seat_;
  std::vector<uint32_t> own_;
  Half halves_[2];
  uint32_t moved_ = 0;
};

// Memory for the rounds of a rank.
struct Worker {
  explicit Worker(const Seat& of)
      : seat(of), in(kLargeCount), out(kLargeCount), versions(of) {}

  const Seat& seat;
  std::vector<uint32_t> in, out;
  Versions versions;
};

// One round; counts what came wrong.
int32_t step(Worker& worker, Doing doing, uint32_t round, Error* error) {
  constexpr Doing kMixture[] = {kBarriers, kSmall, kLarge, kVersions};
  const Seat& seat = worker.seat;
  if (doing == kMixed) doing = kMixture[round % 4];
  if (doing == kBarriers) return callBarrier(seat.comm, 0, error);
  if (doing == kVersions) return worker.versions.move(round, error);
  const int n = wl_comm_size(seat.comm);
  const uint64_t count = doing == kSmall ? 16 : kLargeCount;
  std::vector<uint32_t>& out = worker.out;
  for (uint64_t i = 0; i < count; ++i) worker.in[i] = broughtBy(seat.rank, round, i);
  const int32_t code = allReduce(seat.comm, worker.in.data(), out.data(), count, WL_U32, WL_SUM,
                                 WL_AUTO, 0, error);
  for (uint64_t i = 0; code == WL_OK && i < count; i += 97) {
    uint32_t sum = 0;
    for (int rank = 0; rank < n; ++rank) sum += broughtBy(rank, round, i);
    if (out[i] != sum) ++seat.board.wrong;
  }
  return code;
}

// Rounds until one fails, or there were so many.
void work(const Seat& seat, Doing doing, const std::atomic<uint32_t>& most) {
  Worker worker(seat);
  Error error;
  int32_t code = worker.versions.open(&error);
  for (uint32_t round = 0; code == WL_OK && round < most; ++round) {
    code = step(worker, doing, round, &error);
    if (code == WL_OK) ++seat.board.rounds[seat.rank];
  }
  seat.sees(code, error);
  // Ranks of this host may read the input of this rank until then.
  if (!await([&] { return wl_comm_quiescent(seat.comm) != 0; }, 10'000 * kMs)) ++seat.board.wrong;
  if (!worker.versions.isWhole()) {
    ++seat.board.torn;
    std::fprintf(stderr, "rank %d: its last version is torn\n", seat.rank);
  }
}

constexpr uint32_t kEndless = 1u << 30;

// A group that nothing happens to.
void expectStart(const HostSpread& spread, int64_t silenceNs = 0) {
  HostCrew crew(spread, silenceNs, [](Seat& seat) { work(seat, kMixed, 12); });
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

// Prints how long faults took to show on the survivors that saw them last, over all rounds.
class Times {
 public:
  explicit Times(const char* what) : what_(what) {}
  ~Times() {
    std::sort(worst_.begin(), worst_.end());
    if (worst_.empty()) return;
    std::printf("shown: %s, %zu times: after %.1f ms, median %.1f, at most %.1f\n", what_,
                worst_.size(), ms(worst_.front()), ms(worst_[worst_.size() / 2]),
                ms(worst_.back()));
  }
  void add(int64_t ns) { worst_.push_back(ns); }

 private:
  static double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

  const char* what_;
  std::vector<int64_t> worst_;
};

// Checks that the survivors saw that code. A fault that shows only at the deadline of the calls is
// a DeadlineExceeded, which no test here expects. Returns the ns from `struckNs` until the last of
// them saw it.
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

void expectFaultyRanks(HostCrew& crew, const std::vector<int32_t>& survivors,
                    const std::vector<int32_t>& faultyRanks) {
  for (const int32_t rank : survivors) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(faultyRanks, seen.faultyRanks()) << "rank " << rank << ": " << seen.message;
  }
}

class HostFaults : public testing::TestWithParam<HostSpread> {
 protected:
  const HostSpread& spread() const { return GetParam(); }

  // Each spread begins with another kind of work, so that two rounds cover all kinds. A sanitizer
  // has one round, which is a mixture.
  Doing doingOf(int round) const {
    if (kSanitized && !longForm()) return kMixed;
    const int place = spread().hosts == 4 ? 2 : spread().threads - 1;
    return static_cast<Doing>((2 * place + round) % kDoings);
  }

  // Ports, files and other remains of the fault do not hinder a new group. Under a sanitizer,
  // AHostThatConnectsLateIsNotSilent starts one.
  void expectStartAfter() const {
    if (!kSanitized || longForm()) expectStart(spread());
  }

  // Waits for rounds of work on all ranks, and some more.
  static void letWork(HostCrew& crew, int round) {
    ASSERT_TRUE(crew.awaitRounds(static_cast<uint32_t>(3 + round)));
    usleep(static_cast<useconds_t>(round * 370 % 2000));
  }
};

TEST_P(HostFaults, AKilledProcessIsNamedByItsRanks) {
  Times times("a killed process");
  for (int round = 0; round < rounds(); ++round) {
    const Doing doing = doingOf(round);
    HostCrew crew(spread(), 0, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round * (spread().all() - 1) % spread().all();
    const int64_t struck = wl_clock_ns();
    crew.signal(victim, SIGKILL);
    const std::vector<int32_t> survivors = allBut(spread(), spread().ranksOf(victim));
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectFaultyRanks(crew, survivors, spread().ranksOf(victim));
    std::vector<int> ends(static_cast<size_t>(spread().all()), 0);
    ends[static_cast<size_t>(victim)] = -SIGKILL;
    EXPECT_EQ(ends, crew.end());
  }
  expectStartAfter();
}

// Its processes end one after the other: who sees the first names that one's ranks.
TEST_P(HostFaults, AKilledHostIsNamedByRanksOfIts) {
  Times times("a killed host");
  for (int round = 0; round < rounds(); ++round) {
    const Doing doing = doingOf(round);
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
      const std::vector<int32_t> faultyRanks = seen.faultyRanks();
      EXPECT_FALSE(faultyRanks.empty()) << seen.message;
      for (const int32_t faultyRank : faultyRanks)
        EXPECT_EQ(victim, spread().hostOf(faultyRank)) << "rank " << rank << ": " << seen.message;
    }
    std::vector<int> ends(static_cast<size_t>(spread().all()), 0);
    for (const int32_t rank : dead) ends[static_cast<size_t>(spread().processOf(rank))] = -SIGKILL;
    EXPECT_EQ(ends, crew.end());
  }
  expectStartAfter();
}

TEST_P(HostFaults, APausedHostIsNamedAndHearsOfIt) {
  Times times("a paused host");
  for (int round = 0; round < rounds(); ++round) {
    const Doing doing = doingOf(round);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    const std::vector<int32_t> paused = spread().ranksOfHost(victim);
    const int64_t struck = wl_clock_ns();
    crew.signalHost(victim, SIGSTOP);
    const std::vector<int32_t> survivors = allBut(spread(), paused);
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectFaultyRanks(crew, survivors, paused);
    crew.signalHost(victim, SIGCONT);
    expectSeen(crew, paused, WL_PEER_LOST, struck);
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectStartAfter();
}

TEST_P(HostFaults, ACutLinkIsNamedByTheHostBehindIt) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  Times times("a cut link");
  for (int round = 0; round < rounds(); ++round) {
    const Doing doing = doingOf(round);
    HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { work(seat, doing, kEndless); });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    const std::vector<int32_t> beyond = spread().ranksOfHost(victim);
    const int64_t struck = wl_clock_ns();
    ASSERT_TRUE(setLink(victim, false));
    const std::vector<int32_t> survivors = allBut(spread(), beyond);
    times.add(expectSeen(crew, survivors, WL_PEER_LOST, struck));
    expectFaultyRanks(crew, survivors, beyond);
    // Ranks behind the cut name other ranks, which they do not hear.
    times.add(expectSeen(crew, beyond, WL_PEER_LOST, struck));
    for (const int32_t rank : beyond) {
      for (const int32_t faultyRank : crew.board().seen[rank].faultyRanks())
        EXPECT_NE(victim, spread().hostOf(faultyRank)) << crew.board().seen[rank].message;
    }
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
    ASSERT_TRUE(setLink(victim, true));
    ASSERT_TRUE(awaitLink(victim));
    expectStart(spread());
  }
}

// Simulates the loss of the packets that connect.
TEST_P(HostFaults, AHostThatConnectsLateIsNotSilent) {
  HostCrew crew(spread(), kSilenceNs, [](Seat& seat) { work(seat, kMixed, 12); },
                2 * kSilenceNs);
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  for (int rank = 0; rank < spread().ranks(); ++rank)
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
}

// Simulates a machine that sleeps: no host is to blame for the others' pause.
TEST_P(HostFaults, APauseOfAllHostsIsNobodysSilence) {
  HostCrew crew(spread(), kSilenceNs, [&](Seat& seat) { work(seat, kSmall, kEndless); });
  letWork(crew, 0);
  for (const int signal : {SIGSTOP, SIGCONT}) {
    for (int host = 0; host < spread().hosts; ++host) crew.signalHost(host, signal);
    usleep(static_cast<useconds_t>(2 * kSilenceNs / 1000));
  }
  EXPECT_TRUE(crew.awaitRounds(crew.mostRounds() + 5));
  for (int rank = 0; rank < spread().ranks(); ++rank)
    EXPECT_EQ(-1, crew.board().seen[rank].code) << crew.board().seen[rank].message;
}

// Nothing fails where a link comes back before its host counts as silent.
TEST_P(HostFaults, AShortCutIsOutlasted) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  for (int round = 0; round < rounds(); ++round) {
    const Doing doing = doingOf(round);
    const Shared<std::atomic<bool>> isOver;
    HostCrew crew(spread(), 10'000 * kMs, [&](Seat& seat) {
      std::thread ending;
      if (seat.rank == 0) {
        ending = std::thread([&] {
          Error error;
          if (!await([&] { return isOver->load(); }) ||
              wl_comm_abort(seat.comm, "it went on", &error) != WL_OK) {
            ++seat.board.wrong;
          }
        });
      }
      work(seat, doing, kEndless);
      if (ending.joinable()) ending.join();
    });
    letWork(crew, round);
    const int victim = round % spread().hosts;
    ASSERT_TRUE(setLink(victim, false));
    usleep(300'000);
    const uint32_t cut = crew.mostRounds();
    usleep(50'000);
    EXPECT_EQ(cut, crew.mostRounds()) << "nothing was cut";
    ASSERT_TRUE(setLink(victim, true));
    EXPECT_TRUE(crew.awaitRounds(cut + 5));
    *isOver = true;
    expectSeen(crew, allBut(spread(), {}), WL_ABORTED, 0);
    for (int rank = 0; rank < spread().ranks(); ++rank)
      EXPECT_TRUE(contains(crew.board().seen[rank].message, "it went on"));
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
    ASSERT_TRUE(awaitLink(victim));
  }
}

// Nothing fails: what is late or lost comes again.
TEST_P(HostFaults, ALinkThatDelaysAndLosesCarriesAll) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  for (const char* how : {"delay 100ms", "loss 1%"}) {
    const std::string device = std::getenv("WINDLASS_UCX_NET_DEVICES");
    const std::string shape =
        "tc -n " + namespaces()[0] + " qdisc add dev " + device + " root netem " + how + " 2>&1";
    const std::optional<std::string> refusal = refusalOf(shape);
    if (refusal.has_value())
      GTEST_SKIP() << "this kernel has no netem, or this machine no tc: " << *refusal;
    for (int round = 0; round < rounds(); ++round) expectStart(spread(), 2'000 * kMs);
    const std::string restore = "tc -n " + namespaces()[0] + " qdisc del dev " + device + " root";
    ASSERT_EQ(0, std::system(restore.c_str()));
  }
}

TEST_P(HostFaults, AnAbortReachesEveryHost) {
  Times times("an abort");
  for (int round = 0; round < rounds(); ++round) {
    const int aborter = round * (spread().ranks() - 1) % spread().ranks();
    const Doing doing = doingOf(round);
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
    expectFaultyRanks(crew, others, {aborter});
    for (const int32_t rank : others)
      EXPECT_TRUE(contains(crew.board().seen[rank].message, "the test's reason"));
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectStartAfter();
}

TEST_P(HostFaults, AClosedHandleIsNamedToThoseWhoWaitForIt) {
  Times times("a closed handle");
  for (int round = 0; round < rounds(); ++round) {
    const int leaver = round * (spread().ranks() - 1) % spread().ranks();
    const Doing doing = doingOf(round);
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
    expectFaultyRanks(crew, others, {leaver});
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
  }
  expectStartAfter();
}

TEST_P(HostFaults, ACloseAmongALongPutNamesWhoCloses) {
  constexpr int64_t kMoved = int64_t{64} << 20;  // more than sockets hold
  const Shared<std::atomic<bool>> isPaused;
  HostCrew crew(spread(), 0, [&](Seat& seat) {
    Error error;
    wl_window_t* window = nullptr;
    int32_t code = wl_window_create(seat.comm, kMoved, 0, &window, &error);
    ++seat.board.rounds[seat.rank];
    while (!*isPaused) usleep(1000);
    if (seat.rank == 0) {
      std::vector<uint8_t> data(kMoved);
      const int64_t shape[] = {kMoved};
      const int64_t strides[] = {1};
      const wl_tensor_t local = {sizeof(wl_tensor_t), WL_U8, 1, 0, data.data(), shape, strides};
      wl_tensor_t remote = local;
      remote.data = wl_window_address(window, 0);
      const int peer = wl_comm_size(seat.comm) - 1;
      std::thread closer([&] {
        usleep(200'000);
        Error closed;
        if (wl_comm_close(seat.comm, &closed) != WL_OK) ++seat.board.wrong;
      });
      code = wl_put(seat.comm, window, &local, peer, &remote, &error);
      closer.join();
    } else {
      while (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    }
    seat.sees(code, error);
    wl_window_free(window);
  });
  ASSERT_TRUE(crew.awaitRounds(1));
  const int paused = spread().hosts - 1;
  crew.signalHost(paused, SIGSTOP);
  *isPaused = true;
  std::vector<int32_t> others = allBut(spread(), spread().ranksOfHost(paused));
  others.erase(others.begin());
  EXPECT_TRUE(crew.awaitSeen({0}));
  EXPECT_EQ(WL_CLOSED, crew.board().seen[0].code) << crew.board().seen[0].message;
  EXPECT_TRUE(crew.awaitSeen(others));
  crew.signalHost(paused, SIGCONT);
  for (const int32_t rank : spread().ranksOfHost(paused)) others.push_back(rank);
  expectSeen(crew, others, WL_ABORTED, wl_clock_ns());
  expectFaultyRanks(crew, others, {0});
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread().all()), 0), crew.end());
}

std::vector<HostSpread> spreads(std::vector<HostSpread> some, const HostSpread& more) {
  if (longForm()) some.push_back(more);
  return some;
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostFaults,
                         testing::ValuesIn(spreads({{2, 2, 1}, {2, 1, 2}}, {2, 1, 1})));
INSTANTIATE_TEST_SUITE_P(On4Hosts, HostFaults,
                         testing::ValuesIn(spreads({{4, 1, 1}}, {4, 2, 2})));

}  // namespace host_faults_test
}  // namespace windlass_test
