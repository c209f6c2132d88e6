// SPDX-License-Identifier: Apache-2.0
// The order in which pipes run: sound kernels give the same bytes whatever the seed, a missing flag
// gives wrong ones for some, and instructions of different pipes overlap in time.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "native/isa/checked/profile.h"
#include "native/isa/checked/session.h"
#include "tests/native/checked/test_machine.h"

namespace windlass_test {
namespace pipes_test {

using checked::kA2A3;
using checked::kA5;
using checked::Pipe;

// out = in + 1 over `chunks` chunks of 512 floats, through two pairs of tiles in turn. Each flag of
// `deleted` is left out: MTE2 to V, V to MTE3, V to MTE2, MTE3 to V.
void addOne(TestMachine& test, int chunks, uint32_t deleted = 0) {
  const auto set = [&](uint32_t flag, pipe_t from, pipe_t to, int id) {
    if ((deleted >> flag & 1) == 0) set_flag(from, to, id);
  };
  const auto wait = [&](uint32_t flag, pipe_t from, pipe_t to, int id) {
    if ((deleted >> flag & 1) == 0) wait_flag(from, to, id);
  };
  F32 loaded[2] = {F32(16, 32), F32(16, 32)};
  F32 sums[2] = {F32(16, 32), F32(16, 32)};
  for (uint64_t i = 0; i < 2; ++i) {
    pto::TASSIGN(loaded[i], i * kF32Bytes);
    pto::TASSIGN(sums[i], (2 + i) * kF32Bytes);
    set(2, PIPE_V, PIPE_MTE2, static_cast<int>(i));
    set(3, PIPE_MTE3, PIPE_V, static_cast<int>(i));
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int id = chunk % 2;
    auto in = rowsOf(&test.in[0][static_cast<size_t>(chunk) * 512], 16, 32);
    auto out = rowsOf(&test.out[0][static_cast<size_t>(chunk) * 512], 16, 32);
    wait(2, PIPE_V, PIPE_MTE2, id);
    pto::TLOAD(loaded[id], in);
    set(0, PIPE_MTE2, PIPE_V, id);
    wait(0, PIPE_MTE2, PIPE_V, id);
    wait(3, PIPE_MTE3, PIPE_V, id);
    pto::TADDS(sums[id], loaded[id], 1.0f);
    set(2, PIPE_V, PIPE_MTE2, id);
    set(1, PIPE_V, PIPE_MTE3, id);
    wait(1, PIPE_V, PIPE_MTE3, id);
    pto::TSTORE(out, sums[id]);
    set(3, PIPE_MTE3, PIPE_V, id);
  }
  for (int id = 0; id < 2; ++id) {
    wait(2, PIPE_V, PIPE_MTE2, id);
    wait(3, PIPE_MTE3, PIPE_V, id);
  }
}

bool isSum(const TestMachine& test, int chunks) {
  for (size_t i = 0; i < static_cast<size_t>(chunks) * 512; ++i) {
    if (test.out[0][i] != test.in[0][i] + 1.0f) return false;
  }
  return true;
}

TEST(Pipes, ASoundKernelIsRightForEverySeed) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TestMachine test(kA2A3, seed);
    test.on(0, 0, [&] { addOne(test, 12); });
    test.finish();
    ASSERT_EQ(test.machine.report(), "");
    ASSERT_TRUE(isSum(test, 12)) << "seed " << seed;
  }
}

// Each missing edge is reported for every seed. It matters: without the edge, some orders give
// wrong bytes.
TEST(Pipes, AMissingFlagIsAlwaysToldAndSometimesGivesWrongBytes) {
  for (uint32_t flag = 0; flag < 4; ++flag) {
    int wrong = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      TestMachine test(kA2A3, seed);
      test.on(0, 0, [&] { addOne(test, 12, 1u << flag); });
      test.finish();
      // Flags of the other edges may then be set before they were taken.
      bool isRace = false;
      for (const checked::Breach& breach : test.machine.breaches()) {
        const bool isTwice = breach.rule == checked::Rule::kFlagSetTwice;
        isRace = isRace || breach.rule == checked::Rule::kTileRace;
        ASSERT_TRUE(isTwice || breach.rule == checked::Rule::kTileRace) << breach.text();
      }
      ASSERT_TRUE(isRace) << "flag " << flag << ", seed " << seed;
      wrong += isSum(test, 12) ? 0 : 1;
    }
    EXPECT_GT(wrong, 0) << "flag " << flag;
  }
}

TEST(Pipes, ANotifyBeforeTheReleaseSometimesOvertakesTheData) {
  int early = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TestMachine test(kA2A3, seed);
    test.on(0, 0, [&] {
      F32 tile(16, 32);
      pto::TASSIGN(tile, 0);
      auto from = rowsOf(test.in[0].data(), 16, 32);
      auto to = rowsOf(test.window[1].data(), 16, 32);
      pto::comm::TPUT(to, from, tile);
      auto signal = test.signal(1, 0);
      pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::Set);
      early += test.window[1][511] == test.in[0][511] ? 0 : 1;
    });
    test.finish();
    EXPECT_EQ(test.window[1][511], test.in[0][511]);
    EXPECT_EQ(test.machine.breachCount(), 1u);
  }
  EXPECT_GT(early, 0);
  EXPECT_LT(early, 50);
}

TEST(Pipes, OneSeedIsOneOrder) {
  std::vector<float> before;
  for (int run = 0; run < 2; ++run) {
    TestMachine test(kA2A3, 3);
    test.on(0, 0, [&] { addOne(test, 12, 0xf); });
    test.finish();
    EXPECT_TRUE(run == 0 || test.out[0] == before);
    before = test.out[0];
  }
}

// A wait of the scalar pipe, and a barrier, order what is issued after them.
TEST(Pipes, TheScalarPipeOrdersWhatItIssuesLater) {
  for (const bool byBarrier : {false, true}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      TestMachine test(kA5, seed);
      test.on(0, 0, [&] {
        const auto order = [&](pipe_t from) {
          byBarrier ? pipe_barrier(PIPE_ALL) : flag(from, PIPE_S, EVENT_ID7);
        };
        F32 a(16, 32), b(16, 32);
        pto::TASSIGN(a, 0);
        pto::TASSIGN(b, kF32Bytes);
        for (size_t chunk = 0; chunk < 4; ++chunk) {
          auto in = rowsOf(&test.in[0][chunk * 512], 16, 32);
          auto out = rowsOf(&test.out[0][chunk * 512], 16, 32);
          pto::TLOAD(a, in);
          order(PIPE_MTE2);
          pto::TADDS(b, a, 1.0f);
          order(PIPE_V);
          pto::TSTORE(out, b);
          order(PIPE_MTE3);
        }
      });
      test.finish();
      ASSERT_EQ(test.machine.report(), "");
      ASSERT_TRUE(isSum(test, 4));
    }
  }
}

TEST(Pipes, CountersSayWhatEachEngineDid) {
  TestMachine test(kA2A3);
  test.on(0, 0, [&] { addOne(test, 12); });
  test.finish();
  const checked::Counters counters = test.machine.counters();
  for (const Pipe pipe : {Pipe::kMte2, Pipe::kV, Pipe::kMte3}) {
    EXPECT_EQ(counters.of(pipe).instructions, 12u);
    EXPECT_EQ(counters.of(pipe).bytes, 12 * kF32Bytes);
  }
  EXPECT_EQ(counters.of(Pipe::kMte2).busyCycles, 12 * (64 + kF32Bytes / 64));
  EXPECT_EQ(counters.flags, 4u + 12 * 4);
  EXPECT_EQ(counters.bufferBytes, 4 * kF32Bytes);
}

// If two pairs of tiles are used, loads overlap stores: the whole takes little longer than the
// busiest engine.
TEST(Pipes, CyclesShowThatEnginesOverlap) {
  const auto cycles = [](bool inTurn) {
    TestMachine test(kA2A3);
    test.on(0, 0, [&] {
      for (int chunk = 0; chunk < (inTurn ? 12 : 0); ++chunk) {
        addOne(test, 1);
        pipe_barrier(PIPE_ALL);
      }
      if (!inTurn) addOne(test, 12);
    });
    test.finish();
    EXPECT_EQ(test.machine.report(), "");
    return test.machine.counters();
  };
  const checked::Counters pipelined = cycles(false);
  const checked::Counters inTurn = cycles(true);
  const uint64_t busiest = pipelined.of(Pipe::kMte2).busyCycles;
  EXPECT_EQ(busiest, inTurn.of(Pipe::kMte2).busyCycles);
  EXPECT_LT(pipelined.cycles, busiest * 5 / 4);
  EXPECT_GT(inTurn.cycles, busiest * 2);
  EXPECT_GT(pipelined.overlapCycles, busiest * 3 / 4);
  EXPECT_EQ(inTurn.overlapCycles, 0u);
}

TEST(Pipes, TraceHasARowForEachPipe) {
  TestMachine test(kA2A3, 0, true);
  test.on(1, 1, [&] {
    F32 tile(16, 32);
    pto::TASSIGN(tile, 0);
    auto in = rowsOf(test.in[1].data(), 16, 32);
    pto::TLOAD(tile, in);
  });
  test.finish();
  const std::string trace =
      checked::traceOf({{"a kernel", 2, 2, 1000, test.machine.spans()}}, 3);
  const char* first = "{\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0";
  EXPECT_EQ(trace.rfind(first, 0), 0u);
  const auto has = [&](const char* text) { return trace.find(text) != std::string::npos; };
  EXPECT_TRUE(
      has("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":6,"
          "\"args\":{\"name\":\"block 1 PIPE_MTE2\"}}"));
  EXPECT_TRUE(
      has("{\"name\":\"TLOAD\",\"cat\":\"a kernel\",\"ph\":\"X\",\"pid\":1,\"tid\":6,"
          "\"ts\":1001,\"dur\":96,"
          "\"args\":{\"number\":2,\"bytes\":2048}}"))
      << trace;
  const std::string end = "],\"otherData\":{\"kernels that it lacks\":3}}\n";
  EXPECT_EQ(trace.substr(trace.size() - end.size()), end);
}

template <typename T>
Global<T> packed(T* data, int64_t n0, int64_t n1, int64_t n2, int64_t n3, int64_t n4) {
  return Global<T>(data, pto::Shape<>(n0, n1, n2, n3, n4),
                   pto::Stride<>(n1 * n2 * n3 * n4, n2 * n3 * n4, n3 * n4, n4, 1));
}

// Larger than the tile in every dimension, and strided.
TEST(Transfers, MoveAnyShapeThroughOneTileOrTwo) {
  uint64_t seed = 0;
  for (const int64_t n0 : {1, 2}) {
    for (const int64_t rows : {0, 1, 16, 17, 50}) {
      for (const int64_t columns : {1, 31, 32, 33, 70}) {
        const bool fits = n0 * 3 * rows <= 16 && columns <= 32;
        TestMachine test(kA2A3, ++seed);
        const auto count = static_cast<size_t>(n0 * 3 * rows * columns);
        if (count > TestMachine::kFloats / 2) continue;
        test.on(0, 0, [&] {
          F32 ping(fits ? n0 * 3 * rows : 16, fits ? columns : 32);
          F32 pong = ping;
          pto::TASSIGN(ping, 0);
          pto::TASSIGN(pong, kF32Bytes);
          auto from = packed(test.in[0].data(), n0, 3, 1, rows, columns);
          Global<float> spread(
              test.window[1].data(), pto::Shape<>(n0, 3, 1, rows, columns),
              pto::Stride<>(6 * rows * columns, 2 * rows * columns, 1, 2 * columns, 2));
          auto back = packed(test.out[0].data(), n0, 3, 1, rows, columns);
          pto::comm::TPUT(spread, from, ping, pong);
          pipe_barrier(PIPE_ALL);
          F32 single(fits ? n0 * 3 * rows : 16, fits ? columns : 32);
          pto::TASSIGN(single, 2 * kF32Bytes);
          pto::comm::TGET(back, spread, single);
        });
        test.finish();
        ASSERT_EQ(test.machine.report(), "") << n0 << " " << rows << " " << columns;
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(test.window[1][2 * i], test.in[0][i]);
          ASSERT_EQ(test.window[1][2 * i + 1], -2.0f);
          ASSERT_EQ(test.out[0][i], test.in[0][i]);
        }
        ASSERT_EQ(test.out[0][count], -1.0f);
      }
    }
  }
}

TEST(Transfers, LoadsAndStoresKeepBitsWhateverTheTilesType) {
  TestMachine test(kA2A3);
  std::fill_n(test.in[0].begin(), 512, std::numeric_limits<float>::signaling_NaN());
  test.on(0, 0, [&] {
    Tile<int32_t, 16, 32> tile(16, 32);
    pto::TASSIGN(tile, 0);
    auto from = rowsOf(test.in[0].data(), 16, 32);
    auto to = rowsOf(test.out[0].data(), 16, 32);
    pto::TLOAD(tile, from);
    flag(PIPE_MTE2, PIPE_MTE3);
    pto::TSTORE(to, tile);
  });
  test.finish();
  EXPECT_EQ(test.machine.report(), "");
  EXPECT_EQ(std::memcmp(test.out[0].data(), test.in[0].data(), 512 * sizeof(float)), 0);
}

TEST(Transfers, AtomicAddsOfAllRanksCount) {
  TestMachine test(kA5);
  std::fill_n(test.window[0].begin(), 512, 0.5f);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    test.on(rank, 0, [&] {
      F32 tile(16, 32);
      pto::TASSIGN(tile, 0);
      auto from = rowsOf(test.in[rank].data(), 16, 32);
      auto to = rowsOf(test.window[0].data(), 16, 32);
      pto::comm::TPUT<pto::AtomicType::AtomicAdd>(to, from, tile);
      pto::comm::TPUT(to, from, tile, pto::AtomicType::AtomicAdd);
    });
  }
  test.finish();
  EXPECT_EQ(test.machine.report(), "");
  for (size_t i = 0; i < 512; ++i) {
    ASSERT_EQ(test.window[0][i], 0.5f + 2 * test.in[0][i] + 2 * test.in[1][i]);
  }
}

// Each rank's core on a thread of its own: rank r puts its input into the next one's window, round
// after round; a window is written again only after its owner has said that it took it.
TEST(Ranks, ARingOfPutsIsCleanAndRight) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    TestMachine test(seed % 2 == 0 ? kA2A3 : kA5, seed);
    constexpr int32_t kRounds = 8;
    const auto await = [](pto::comm::Signal signal, int32_t value) {
      while (!pto::comm::TTEST(signal, value, pto::comm::WaitCmp::GE)) std::this_thread::yield();
      pipe_barrier(PIPE_ALL);
    };
    const auto tell = [](pto::comm::Signal signal, int32_t value) {
      pipe_barrier(PIPE_ALL);
      dsb(DSB_DDR);
      pto::comm::TNOTIFY(signal, value, pto::comm::NotifyOp::Set);
    };
    const auto shift = [&](uint32_t rank) {
      const uint32_t peer = 1 - rank;
      F32 ping(16, 32), pong(16, 32);
      pto::TASSIGN(ping, 0);
      pto::TASSIGN(pong, kF32Bytes);
      for (int32_t round = 0; round < kRounds; ++round) {
        auto in = rowsOf(&test.in[rank][static_cast<size_t>(round) * 1024], 32, 32);
        auto there = rowsOf(test.window[peer].data(), 32, 32);
        auto here = rowsOf(test.window[rank].data(), 32, 32);
        auto out = rowsOf(&test.out[rank][static_cast<size_t>(round) * 1024], 32, 32);
        await(test.signal(rank, 1), round);
        pto::comm::TPUT(there, in, ping, pong);
        tell(test.signal(peer, 0), round + 1);
        await(test.signal(rank, 0), round + 1);
        pto::comm::TGET(out, here, ping, pong);
        tell(test.signal(peer, 1), round + 1);
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] { test.on(rank, 0, [&] { shift(rank); }); });
    }
    for (std::thread& thread : threads) thread.join();
    test.finish();
    ASSERT_EQ(test.machine.report(), "");
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (size_t i = 0; i < size_t{kRounds} * 1024; ++i) {
        ASSERT_EQ(test.out[rank][i], test.in[1 - rank][i]);
      }
    }
  }
}

TEST(PipeSeed, IsANumberOrRefused) {
  const auto expectSeed = [](uint64_t expected, const char* request) {
    const checked::SeedChoice choice = checked::chooseSeed(request);
    EXPECT_STREQ("", choice.error) << request;
    EXPECT_EQ(expected, choice.seed) << request;
  };
  EXPECT_STREQ("", checked::chooseSeed(nullptr).error);
  expectSeed(0, "");
  expectSeed(0, "0");
  expectSeed(4711, "4711");
  expectSeed(18446744073709551615u, "18446744073709551615");
  for (const char* wrong : {"x", "17x", " 17", "17 ", "-1", "+1", "0x11", "1.0", "1e3",
                            "18446744073709551616"}) {
    const checked::SeedChoice choice = checked::chooseSeed(wrong);
    EXPECT_EQ(std::string("WINDLASS_PIPE_SEED is '") + wrong +
                  "', and a seed is a number from 0 to 2^64 - 1",
              choice.error);
  }
  EXPECT_LT(std::strlen(checked::chooseSeed(std::string(9999, '7').c_str()).error), 120u);
}

}  // namespace pipes_test
}  // namespace windlass_test
