// SPDX-License-Identifier: Apache-2.0
// Hosts beyond a slow link, or that take nothing: what is moved there waits, few of its bytes are
// kept, and what says that a host lives, or that the communicator has failed, goes past it.
#include <sys/resource.h>

#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_pressure_test {

constexpr HostSpread kPair = {2, 1, 1};

uint64_t keptBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t addressBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  file >> all;
  return all * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Rows of 4 KiB, and as they lie in a window twice as long.
struct Rows {
  static constexpr int64_t kRowBytes = 4096;
  explicit Rows(int64_t bytes) : shape{bytes / kRowBytes, kRowBytes}, data(bytes, uint8_t{1}) {}

  wl_tensor_t here() {
    return {sizeof(wl_tensor_t), WL_U8, 2, 0, data.data(), shape, tight};
  }
  wl_tensor_t there(wl_window_t* window, int rank) const {
    return {sizeof(wl_tensor_t), WL_U8, 2, 0, wl_window_address(window, rank), shape, wide};
  }

  int64_t shape[2];
  int64_t tight[2] = {kRowBytes, 1};
  int64_t wide[2] = {2 * kRowBytes, 1};
  std::vector<uint8_t> data;
};

// State of rank 0, which moves copies to rank 1. The process of rank 1 is stopped from `isStopped`
// on.
struct Pressure {
  std::atomic<bool> isStopped;
  std::atomic<bool> isOver;
  std::atomic<uint64_t> grownBytes;
  std::atomic<uint32_t> calls;
};

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kFreedBytes = uint64_t{256} << 20;  // that AddressSanitizer keeps
#else
constexpr uint64_t kFreedBytes = 0;
#endif
constexpr uint64_t kMostGrownBytes = (uint64_t{48} << 20) + kFreedBytes;

class HostPressure : public testing::Test {};

// Each of `move` moves 16 MiB, or notifies often.
template <class Move>
void moveToWhoStandsStill(const Move& move) {
  constexpr int64_t kBytes = int64_t{16} << 20;
  constexpr int64_t kLongSilenceNs = 20'000 * kMs;  // of a busy machine's host that stood still
  const Shared<Pressure> pressure;
  HostCrew crew(kPair, kLongSilenceNs, [&](Seat& seat) {
    Error error;
    wl_window_t* window = nullptr;
    int32_t code = wl_window_create(seat.comm, 2 * kBytes + 4096, 0, &window, &error);
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (seat.rank == 0) {
      Rows rows(kBytes);
      while (!pressure->isStopped) usleep(1000);
      const uint64_t before = keptBytes();
      std::thread looking([&] {
        while (!pressure->isOver) {
          pressure->grownBytes =
              std::max<uint64_t>(pressure->grownBytes, std::max(keptBytes(), before) - before);
          usleep(1000);
        }
      });
      for (uint32_t i = 1; i <= 8 && code == WL_OK; ++i) {
        code = move(seat.comm, window, rows, i, &error);
        ++pressure->calls;
      }
      if (code == WL_OK) code = wl_notify(seat.comm, window, 1, 2 * kBytes, 1, &error);
      pressure->isOver = true;
      looking.join();
    } else if (code == WL_OK) {
      code = wl_wait(seat.comm, window, 0, 2 * kBytes, 1, 0, &error);
    }
    seat.sees(code, error);
    wl_window_free(window);
  });
  ASSERT_TRUE(crew.awaitRounds(1));
  crew.signal(1, SIGSTOP);
  pressure->isStopped = true;
  usleep(1'000'000);
  EXPECT_GT(8u, pressure->calls) << "nothing held the calls up";
  EXPECT_GT(kMostGrownBytes, pressure->grownBytes);
  crew.signal(1, SIGCONT);
  EXPECT_TRUE(crew.awaitSeen({0, 1}));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  EXPECT_GT(kMostGrownBytes, pressure->grownBytes);
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

TEST_F(HostPressure, AStridedPutWaitsForAHostThatStandsStill) {
  moveToWhoStandsStill([](wl_comm_t* comm, wl_window_t* window, Rows& rows, uint32_t,
                          Error* error) {
    const wl_tensor_t here = rows.here();
    const wl_tensor_t there = rows.there(window, 0);
    return wl_put(comm, window, &here, 1, &there, error);
  });
}

TEST_F(HostPressure, AccumulatesWaitForAHostThatStandsStill) {
  moveToWhoStandsStill([](wl_comm_t* comm, wl_window_t* window, Rows& rows, uint32_t,
                          Error* error) {
    wl_tensor_t here = rows.here();
    wl_tensor_t there = rows.there(window, 0);
    here.dtype = there.dtype = WL_I8;
    return wl_accumulate(comm, window, &here, 1, &there, error);
  });
}

TEST_F(HostPressure, NotifiesWaitForAHostThatStandsStill) {
  moveToWhoStandsStill([](wl_comm_t* comm, wl_window_t* window, Rows&, uint32_t turn,
                          Error* error) {
    constexpr uint32_t kTimes = 100'000;
    int32_t code = WL_OK;
    for (uint32_t i = 1; i <= kTimes && code == WL_OK; ++i)
      code = wl_notify(comm, window, 1, 0, kTimes * turn + i, error);
    return code;
  });
}

// If a rank lacks memory, all ranks say so and name it. Puts to a stopped process use up the
// memory, because they stay here once the connection is full.
TEST_F(HostPressure, ASenderThatLacksMemoryNamesItself) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends a process whose address space is full: the build without "
                  "it runs this";
#endif
  constexpr int64_t kBytes = int64_t{64} << 20;
  const Shared<Pressure> pressure;
  HostCrew crew(kPair, 0, [&](Seat& seat) {
    Error error;
    wl_window_t* window = nullptr;
    int32_t code = wl_window_create(seat.comm, 2 * kBytes, 0, &window, &error);
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    ++seat.board.rounds[seat.rank];
    if (code == WL_OK && seat.rank == 0) {
      Rows rows(kBytes);
      while (!pressure->isStopped) usleep(1000);
      const wl_tensor_t here = rows.here();
      const wl_tensor_t there = rows.there(window, 0);
      rlimit before = {};
      getrlimit(RLIMIT_AS, &before);
      const rlimit least = {addressBytes(), before.rlim_max};
      setrlimit(RLIMIT_AS, &least);
      // Takes the memory that the allocator still has.
      std::vector<std::unique_ptr<uint8_t[]>> taken;
      taken.reserve(1 << 16);
      for (size_t bytes = 1 << 20; bytes >= 1024; bytes /= 2)
        while (auto* more = new (std::nothrow) uint8_t[bytes]) taken.emplace_back(more);
      code = wl_put(seat.comm, window, &here, 1, &there, &error);
      taken.clear();
      setrlimit(RLIMIT_AS, &before);
      pressure->isOver = true;
    } else if (code == WL_OK) {
      code = callBarrier(seat.comm, 0, &error);
    }
    seat.sees(code, error);
    wl_window_free(window);
  });
  ASSERT_TRUE(crew.awaitRounds(1));
  crew.signal(1, SIGSTOP);
  pressure->isStopped = true;
  await([&] { return pressure->isOver.load(); }, HostCrew::kDeadlineNs);
  crew.signal(1, SIGCONT);
  EXPECT_TRUE(crew.awaitSeen({0, 1}));
  for (int rank = 0; rank < 2; ++rank) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(WL_RESOURCE, seen.code) << seen.message;
    EXPECT_EQ(std::vector<int32_t>{0}, seen.faultyRanks()) << seen.message;
  }
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

// A program's signals go to its own threads, and those of a fault to the thread that makes it.
TEST_F(HostPressure, ThreadsOfTheWireTakeNoSignalsButFaults) {
  HostCrew crew(kPair, 0, [](Seat& seat) {
    Error error;
    const int32_t code = callBarrier(seat.comm, 0, &error);
    int threads = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      const std::string name = entry.path().filename();
      if (name == std::to_string(getpid()) || name == std::to_string(gettid())) continue;
      ++threads;
      std::ifstream status(entry.path() / "status");
      for (std::string line; std::getline(status, line);) {
        if (line.rfind("SigBlk:", 0) != 0) continue;
        const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
        for (const int number : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1})
          if ((blocked >> (number - 1) & 1) == 0) ++seat.board.wrong;
        for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
          if ((blocked >> (number - 1) & 1) != 0) ++seat.board.wrong;
      }
    }
    // UCX's, and this library's.
    if (threads < 2) ++seat.board.wrong;
    seat.sees(code, error);
  });
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

// Links of 25 MB/s, over which kSlowBytes take longer than a host may be silent, and than a close
// waits.
constexpr int64_t kSlowBytes = int64_t{64} << 20;

class HostSlowLink : public testing::Test {
 protected:
  void SetUp() override {
    if (namespaces().empty())
      GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
    device_ = std::getenv("WINDLASS_UCX_NET_DEVICES");
    for (int host = 0; host < kPair.hosts; ++host) {
      const std::string& space = namespaces()[static_cast<size_t>(host)];
      const auto refusal = refusalOf("tc -n " + space + " qdisc replace dev " + device_ +
                                     " root tbf rate 200mbit burst 256kb latency 50ms 2>&1");
      if (refusal.has_value())
        GTEST_SKIP() << "this kernel has no tbf, or this machine no tc: " << *refusal;
      slowed_.push_back(space);
    }
  }
  void TearDown() override {
    for (const std::string& space : slowed_) {
      const std::string restore = "tc -n " + space + " qdisc del dev " + device_ + " root";
      EXPECT_EQ(0, std::system(restore.c_str()));
    }
  }

  // Rank 0 moves `move`'s bytes to rank 1, and notifies it; then `after`.
  template <class Move, class After>
  void moveAndNotify(const Move& move, const After& after) {
    HostCrew crew(kPair, kSilenceNs, [&](Seat& seat) {
      Error error;
      wl_window_t* window = nullptr;
      int32_t code = wl_window_create(seat.comm, 2 * kSlowBytes + 4096, 0, &window, &error);
      if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
      usleep(300'000);  // each has heard of the other
      if (code == WL_OK && seat.rank == 0) {
        Rows rows(kSlowBytes);
        code = move(seat.comm, window, rows, &error);
        if (code == WL_OK) code = wl_notify(seat.comm, window, 1, 2 * kSlowBytes, 1, &error);
      } else if (code == WL_OK) {
        code = wl_wait(seat.comm, window, 0, 2 * kSlowBytes, 1, 0, &error);
      }
      if (code == WL_OK) code = after(seat, &error);
      seat.sees(code, error);
      wl_window_free(window);
    });
    EXPECT_TRUE(crew.awaitSeen({0, 1}));
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
    EXPECT_EQ(std::vector<int>(2, 0), crew.end());
  }

 private:
  std::string device_;
  std::vector<std::string> slowed_;
};

int32_t putRows(wl_comm_t* comm, wl_window_t* window, Rows& rows, Error* error) {
  const wl_tensor_t here = rows.here();
  const wl_tensor_t there = rows.there(window, 0);
  return wl_put(comm, window, &here, 1, &there, error);
}

int32_t enterBarrier(Seat& seat, Error* error) {
  return callBarrier(seat.comm, 0, error);
}

TEST_F(HostSlowLink, AHostThatTakesALongPutIsNotSilent) {
  moveAndNotify(
      [](wl_comm_t* comm, wl_window_t* window, Rows& rows, Error* error) {
        wl_tensor_t here = rows.here();
        wl_tensor_t there = rows.there(window, 0);
        here.strides = there.strides = rows.tight;
        return wl_put(comm, window, &here, 1, &there, error);
      },
      enterBarrier);
}

TEST_F(HostSlowLink, AHostThatTakesAStridedPutIsNotSilent) { moveAndNotify(putRows, enterBarrier); }

TEST_F(HostSlowLink, WhatWasMovedArrivesBeforeARankLeaves) {
  moveAndNotify(putRows, [](Seat&, Error*) { return WL_OK; });
}

TEST_F(HostSlowLink, AHostThatTakesALongAllToAllIsNotSilent) {
  HostCrew crew(kPair, kSilenceNs, [](Seat& seat) {
    Error error;
    std::vector<uint8_t> in(2 * kSlowBytes, uint8_t{1});
    std::vector<uint8_t> out(2 * kSlowBytes);
    int32_t code = callBarrier(seat.comm, 0, &error);
    usleep(300'000);
    if (code == WL_OK)
      code = allToAll(seat.comm, in.data(), out.data(), kSlowBytes, WL_U8, WL_AUTO, 0, &error);
    seat.sees(code, error);
  });
  EXPECT_TRUE(crew.awaitSeen({0, 1}));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

// The last row is not there when the other rank sees the abort.
TEST_F(HostSlowLink, AnAbortGoesPastWhatIsMoved) {
  HostCrew crew(kPair, kSilenceNs, [&](Seat& seat) {
    Error error;
    wl_window_t* window = nullptr;
    int32_t code = wl_window_create(seat.comm, 2 * kSlowBytes, 0, &window, &error);
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    if (code == WL_OK && seat.rank == 0) {
      std::thread aborter([&] {
        usleep(300'000);
        Error aborted;
        if (wl_comm_abort(seat.comm, "enough", &aborted) != WL_OK) ++seat.board.wrong;
      });
      Rows rows(kSlowBytes);
      code = putRows(seat.comm, window, rows, &error);
      aborter.join();
    } else if (code == WL_OK) {
      code = callBarrier(seat.comm, 0, &error);
      const auto* own = static_cast<std::atomic<uint8_t>*>(wl_window_address(window, 1));
      if (own[2 * kSlowBytes - 2 * Rows::kRowBytes] != 0) ++seat.board.wrong;
    }
    seat.sees(code, error);
    wl_window_free(window);
  });
  EXPECT_TRUE(crew.awaitSeen({0, 1}));
  for (int rank = 0; rank < 2; ++rank) {
    const Seen& seen = crew.board().seen[rank];
    EXPECT_EQ(WL_ABORTED, seen.code) << seen.message;
    EXPECT_TRUE(contains(seen.message, "enough")) << seen.message;
  }
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

}  // namespace host_pressure_test
}  // namespace windlass_test
