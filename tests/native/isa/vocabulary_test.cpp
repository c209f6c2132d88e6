// SPDX-License-Identifier: Apache-2.0
// The tile vocabulary as a kernel uses it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "native/isa/isa.h"

namespace windlass {
namespace vocabulary_test {

using DynShape = Shape<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;
using DynStride = Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;
template <typename T>
using Global = GlobalTensor<T, DynShape, DynStride>;
using FloatTile = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, DYNAMIC, DYNAMIC>;

template <typename T>
Global<T> packed(T* data, int64_t n0, int64_t n1, int64_t n2, int64_t n3, int64_t n4) {
  return Global<T>(data, DynShape(n0, n1, n2, n3, n4),
                   DynStride(n1 * n2 * n3 * n4, n2 * n3 * n4, n3 * n4, n4, 1));
}

std::vector<float> ramp(size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Vocabulary, NumbersAreAbi) {
  EXPECT_EQ(static_cast<int>(comm::NotifyOp::AtomicAdd), 0);
  EXPECT_EQ(static_cast<int>(comm::NotifyOp::Set), 1);
  EXPECT_EQ(static_cast<int>(comm::WaitCmp::EQ), 0);
  EXPECT_EQ(static_cast<int>(comm::WaitCmp::LE), 5);
  EXPECT_EQ(static_cast<int>(AtomicType::AtomicNone), 0);
  EXPECT_EQ(static_cast<int>(AtomicType::AtomicAdd), 1);
  EXPECT_EQ(static_cast<int>(RoundMode::CAST_RINT), 1);
  EXPECT_EQ(static_cast<int>(RoundMode::CAST_ODD), 6);
  EXPECT_EQ(static_cast<int>(SaturationMode::ON), 0);
}

TEST(Vocabulary, ShapesTakeDynamicExtentsInOrder) {
  const Shape<2, DYNAMIC, 3, DYNAMIC, 5> shape(7, 11);
  const int64_t expected[] = {2, 7, 3, 11, 5};
  for (int d = 0; d < kGlobalDims; ++d) EXPECT_EQ(shape.shape[d], expected[d]);
  float data = 0;
  GlobalTensor<float, Shape<1, 1, 1, 4, 8>, Stride<32, 32, 32, 8, 1>> tensor(&data);
  EXPECT_EQ(tensor.data(), &data);
  EXPECT_EQ(tensor.GetShape(3), 4);
  EXPECT_EQ(tensor.GetStride(3), 8);
  const Shape<2, DYNAMIC, 3> ones;
  const int64_t dynamicOnes[] = {2, 1, 3, 1, 1};
  for (int d = 0; d < kGlobalDims; ++d) EXPECT_EQ(ones.shape[d], dynamicOnes[d]);
  const Shape<1, 1, 1, DYNAMIC, DYNAMIC> all(1, 1, 1, 4, 8);
  EXPECT_EQ(all.shape[3], 4);
  EXPECT_EQ(all.shape[4], 8);
}

TEST(Vocabulary, TilesAtOneOffsetShareMemory) {
  Tile<TileType::Vec, float, 4, 8> a;
  Tile<TileType::Vec, int32_t, 4, 8> b;
  TASSIGN(a, 1024);
  TASSIGN(b, 1024);
  a.data()[5] = 1.0f;
  EXPECT_EQ(b.data()[5], 0x3f800000);
  TASSIGN(b, 2048);
  EXPECT_EQ(reinterpret_cast<char*>(b.data()) - reinterpret_cast<char*>(a.data()), 1024);
}

TEST(Vocabulary, LoadAndStoreTakeTheValidPart) {
  std::vector<float> source = ramp(12 * 40);
  std::vector<float> target(12 * 20, -1.0f);
  FloatTile tile(12, 10);
  TASSIGN(tile, 64);
  Global<float> from(source.data(), DynShape(1, 3, 2, 2, 10), DynStride(480, 160, 80, 40, 1));
  TLOAD(tile, from);
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  Global<float> to(target.data(), DynShape(1, 1, 1, 12, 10), DynStride(0, 0, 0, 20, 2));
  TSTORE(to, tile);
  for (size_t r = 0; r < 12; ++r) {
    for (size_t c = 0; c < 10; ++c) {
      EXPECT_EQ(target[r * 20 + c * 2], source[r * 40 + c]);
      EXPECT_EQ(target[r * 20 + c * 2 + 1], -1.0f);
    }
  }
}

TEST(Vocabulary, ArithmeticOnTiles) {
  std::vector<float> left = ramp(8 * 32, -100.0f);
  std::vector<float> right = ramp(8 * 32, -7.5f);
  FloatTile a(8, 32);
  FloatTile b(8, 32);
  FloatTile c(8, 32);
  TASSIGN(a, 0);
  TASSIGN(b, 4096);
  TASSIGN(c, 8192);
  Global<float> fromLeft = packed(left.data(), 1, 1, 1, 8, 32);
  Global<float> fromRight = packed(right.data(), 1, 1, 1, 8, 32);
  TLOAD(a, fromLeft);
  TLOAD(b, fromRight);
  const auto expect = [&](auto op) {
    for (size_t i = 0; i < left.size(); ++i) ASSERT_EQ(c.data()[i], op(left[i], right[i]));
  };
  TADD(c, a, b);
  expect([](float x, float y) { return x + y; });
  TMUL(c, a, b);
  expect([](float x, float y) { return x * y; });
  TMAX(c, a, b);
  expect([](float x, float y) { return x > y ? x : y; });
  TMIN(c, a, b);
  expect([](float x, float y) { return x < y ? x : y; });
  Tile<TileType::Vec, bfloat16_t, 8, 32> narrow;
  TASSIGN(narrow, 12288);
  TCVT(narrow, a, RoundMode::CAST_RINT);
  EXPECT_EQ(narrow.data()[100].bits, 0);       // 0
  EXPECT_EQ(narrow.data()[101].bits, 0x3f80);  // 1
}

// Larger than the tile in every dimension, and strided: the tile's size never shows.
TEST(Vocabulary, PutAndGetMoveAnyShape) {
  for (const int64_t n0 : {1, 2}) {
    for (const int64_t rows : {0, 1, 16, 17, 50}) {
      for (const int64_t columns : {1, 31, 32, 33, 200}) {
        const auto count = static_cast<size_t>(n0 * 3 * rows * columns);
        std::vector<float> source = ramp(count, 1.0f);
        std::vector<float> put(count * 2 + 1, -1.0f);
        std::vector<float> got(count + 1, -1.0f);
        FloatTile ping(16, 32);
        FloatTile pong(16, 32);
        TASSIGN(ping, 0);
        TASSIGN(pong, 4096);
        Global<float> from = packed(source.data(), n0, 3, 1, rows, columns);
        Global<float> spread(
            put.data(), DynShape(n0, 3, 1, rows, columns),
            DynStride(6 * rows * columns, 2 * rows * columns, 1, 2 * columns, 2));
        Global<float> to = packed(got.data(), n0, 3, 1, rows, columns);
        comm::TPUT(spread, from, ping, pong);
        comm::TGET(to, spread, ping);
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(put[i * 2], source[i]);
          ASSERT_EQ(put[i * 2 + 1], -1.0f);
          ASSERT_EQ(got[i], source[i]);
        }
        EXPECT_EQ(got[count], -1.0f);
      }
    }
  }
}

template <typename T>
void addsFromManyThreads(T one, T expected) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  constexpr size_t kCount = 77;
  std::vector<T> target(kCount, T{});
  std::vector<T> source(kCount, one);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Tile<TileType::Vec, T, 1, 64> tile;
      for (int i = 0; i < kRounds; ++i) {
        Global<T> to = packed(target.data(), 1, 1, 1, 7, 11);
        Global<T> from = packed(source.data(), 1, 1, 1, 7, 11);
        comm::TPUT<AtomicType::AtomicAdd>(to, from, tile);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const T& value : target) ASSERT_EQ(std::memcmp(&value, &expected, sizeof(T)), 0);
}

TEST(Vocabulary, AtomicAddLosesNothing) {
  addsFromManyThreads<float>(1.0f, 200.0f);
  addsFromManyThreads<half>({0x3c00}, {0x5a40});        // 200
  addsFromManyThreads<bfloat16_t>({0x3f80}, {0x4348});  // 200
  addsFromManyThreads<int32_t>(3, 600);
  addsFromManyThreads<int16_t>(300, static_cast<int16_t>(60000));
  addsFromManyThreads<int8_t>(1, static_cast<int8_t>(200));
}

TEST(Vocabulary, TestComparesSigned) {
  alignas(64) int32_t word = -3;
  comm::Signal signal(&word);
  const struct {
    comm::WaitCmp cmp;
    bool less, equal, greater;  // want is -4, -3, -2
  } cases[] = {
      {comm::WaitCmp::EQ, false, true, false}, {comm::WaitCmp::NE, true, false, true},
      {comm::WaitCmp::GT, true, false, false}, {comm::WaitCmp::GE, true, true, false},
      {comm::WaitCmp::LT, false, false, true}, {comm::WaitCmp::LE, false, true, true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(TTEST(signal, -4, c.cmp), c.less);
    EXPECT_EQ(TTEST(signal, -3, c.cmp), c.equal);
    EXPECT_EQ(TTEST(signal, -2, c.cmp), c.greater);
  }
  EXPECT_EQ(word, -3);
}

TEST(Vocabulary, NotifySetsAndAdds) {
  alignas(64) int32_t word = 0x7fffffff;
  comm::Signal signal(&word);
  TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
  EXPECT_EQ(word, INT32_MIN);
  TNOTIFY(signal, 42, comm::NotifyOp::Set);
  EXPECT_EQ(word, 42);
}

TEST(Vocabulary, GridIsSatisfiedWhenEveryWordIs) {
  int32_t words[2 * 20] = {};
  comm::Signal2D<2, 3> grid(words, 20);
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 3; ++c) {
      EXPECT_FALSE(TTEST(grid, 5, comm::WaitCmp::GE));
      comm::Signal signal = grid.at(r, c);
      TNOTIFY(signal, 5, comm::NotifyOp::Set);
    }
  }
  EXPECT_TRUE(TTEST(grid, 5, comm::WaitCmp::GE));
}

TEST(Vocabulary, WaitEndsWhenToldToStop) {
  alignas(64) int32_t word = 0;
  int looks = 0;
  comm::Signal signal(&word);
  EXPECT_FALSE(TWAIT(signal, 1, comm::WaitCmp::GE, [&] { return ++looks == 1000; }));
  EXPECT_EQ(looks, 1000);
  word = 1;
  EXPECT_TRUE(TWAIT(signal, 1, comm::WaitCmp::GE, [] { return true; }));
}

// Data, then the release sequence; wait, then data: a reader that sees the signal sees the data.
// The sizes cover inline, vector and streaming copies.
TEST(Vocabulary, NotifyPublishesWhatWasPut) {
  for (const size_t count : {8, 1000, 100000, 4200000}) {
    const int rounds = count > 1000000 ? 3 : 200;
    std::vector<float> window(count);
    alignas(64) int32_t ready = 0;
    alignas(64) int32_t consumed = 0;
    comm::Signal isReady(&ready);
    comm::Signal isConsumed(&consumed);
    const auto never = [] {
      std::this_thread::yield();
      return false;
    };
    std::thread writer([&] {
      std::vector<float> source(count);
      FloatTile tile(16, 32);
      for (int i = 1; i <= rounds; ++i) {
        std::fill(source.begin(), source.end(), static_cast<float>(i));
        Global<float> to = packed(window.data(), 1, 1, 1, 1, static_cast<int64_t>(count));
        Global<float> from = packed(source.data(), 1, 1, 1, 1, static_cast<int64_t>(count));
        comm::TPUT(to, from, tile);
        pipe_barrier(PIPE_ALL);
        dsb(DSB_DDR);
        TNOTIFY(isReady, i, comm::NotifyOp::Set);
        TWAIT(isConsumed, i, comm::WaitCmp::GE, never);
        pipe_barrier(PIPE_ALL);
      }
    });
    size_t wrong = 0;
    for (int i = 1; i <= rounds; ++i) {
      TWAIT(isReady, i, comm::WaitCmp::GE, never);
      pipe_barrier(PIPE_ALL);
      for (const float value : window) wrong += value == static_cast<float>(i) ? 0 : 1;
      TNOTIFY(isConsumed, i, comm::NotifyOp::Set);
    }
    writer.join();
    EXPECT_EQ(wrong, 0u) << count;
  }
}

}  // namespace vocabulary_test
}  // namespace windlass
