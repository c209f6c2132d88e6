// SPDX-License-Identifier: Apache-2.0
// Random strided views, with and without casts, against one element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/native/isa/reference.h"

namespace windlass {
namespace strided_test {

// Number of random views of each test. Sanitizers make a round about twenty times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
const int kRounds = std::getenv("WINDLASS_TEST_LONG") == nullptr ? 40 : 150;
#else
const int kRounds = std::getenv("WINDLASS_TEST_LONG") != nullptr ? 1500 : 400;
#endif

// A view with its own memory: dimensions laid out in random order, with random gaps.
struct RandomView {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<unsigned char> memory;

  RandomView(DType type, const std::vector<int64_t>& extents, bool mayRepeat,
             std::mt19937_64& random)
      : dtype(type), shape(extents), strides(extents.size()) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (random() % 3 != 0) std::shuffle(order.begin(), order.end(), random);
    int64_t step = random() % 4 == 0 ? 2 : 1;
    int64_t last = 0;
    for (size_t i = order.size(); i-- > 0;) {
      const size_t d = order[i];
      if (mayRepeat && random() % 6 == 0) continue;  // stride 0
      strides[d] = step;
      last += step * std::max<int64_t>(shape[d] - 1, 0);
      step *= std::max<int64_t>(shape[d], 1);
      if (random() % 3 == 0) step += static_cast<int64_t>(random() % 5);
    }
    memory.resize(static_cast<size_t>(last + 1) * sizeOf(dtype), 0xa5);
  }

  void fill(std::mt19937_64& random) {
    const size_t bytes = sizeOf(dtype);
    for (size_t at = 0; at < memory.size(); at += bytes) {
      const uint64_t code = reference::randomElement(dtype, random);
      std::memcpy(&memory[at], &code, bytes);
    }
  }

  StridedView view() {
    return {memory.data(), dtype, static_cast<uint32_t>(shape.size()), shape.data(),
            strides.data()};
  }

  size_t offset(const std::vector<int64_t>& index) const {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    return static_cast<size_t>(at) * sizeOf(dtype);
  }
  uint64_t element(const std::vector<int64_t>& index) const {
    return reference::loadElement(&memory[offset(index)], sizeOf(dtype));
  }
};

template <typename Visit>
void forEachIndex(const std::vector<int64_t>& shape, Visit visit) {
  for (const int64_t extent : shape) {
    if (extent == 0) return;
  }
  std::vector<int64_t> index(shape.size());
  for (;;) {
    visit(index);
    size_t d = shape.size();
    for (;;) {
      if (d == 0) return;
      --d;
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

std::vector<int64_t> randomShape(std::mt19937_64& random) {
  const size_t ndim = random() % 12 == 0 ? random() % (kMaxDims + 1) : random() % 6;
  std::vector<int64_t> shape(ndim);
  int64_t room = 60000;
  for (int64_t& extent : shape) {
    const int64_t choices[] = {1, 2, 3, 4, 8, 16, 17, 33, 64, 100, 130, 700, 1025, 3000};
    extent = choices[random() % 14];
    if (random() % 60 == 0) extent = 0;
    if (extent > room) extent = random() % 2 == 0 ? 1 : std::min<int64_t>(room, 3);
    room /= std::max<int64_t>(extent, 1);
  }
  std::shuffle(shape.begin(), shape.end(), random);
  return shape;
}

std::string describe(const RandomView& dst, const RandomView& src) {
  return "shape " + testing::PrintToString(dst.shape) + " dst strides " +
         testing::PrintToString(dst.strides) + " src strides " +
         testing::PrintToString(src.strides);
}

// Expects dst as it was, but for its elements.
void expectElements(const RandomView& dst, std::vector<unsigned char> before,
                    const std::vector<std::pair<size_t, uint64_t>>& elements) {
  for (const auto& [at, value] : elements) std::memcpy(&before[at], &value, sizeOf(dst.dtype));
  ASSERT_TRUE(before == dst.memory);
}

class Strided : public testing::Test {
 protected:
  void SetUp() override {
    seed_ = reference::testSeed();
    random_.seed(seed_);
    std::printf("[     seed ] WINDLASS_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }
  Stores anyStores() { return random_() % 2 == 0 ? Stores::kCached : Stores::kStreaming; }
  uint64_t seed_ = 0;
  std::mt19937_64 random_;
};

TEST_F(Strided, MovesOfEveryTypeKeepBits) {
  for (int round = 0; round < kRounds; ++round) {
    const auto dtype = static_cast<DType>(random_() % kDTypeCount);
    const std::vector<int64_t> shape = randomShape(random_);
    RandomView dst(dtype, shape, false, random_);
    RandomView src(dtype, shape, true, random_);
    for (unsigned char& byte : src.memory) byte = static_cast<unsigned char>(random_());
    const std::vector<unsigned char> before = dst.memory;
    std::vector<std::pair<size_t, uint64_t>> elements;
    forEachIndex(shape, [&](const std::vector<int64_t>& index) {
      elements.emplace_back(dst.offset(index), src.element(index));
    });
    SCOPED_TRACE(describe(dst, src));
    TMOVE_CVT(dst.view(), src.view(), dtype, anyStores());
    ASSERT_NO_FATAL_FAILURE(expectElements(dst, before, elements));
  }
}

TEST_F(Strided, CastsOnEveryPath) {
  const auto paths = reference::availablePaths();
  for (int round = 0; round < kRounds; ++round) {
    const DType from = reference::kFormats[random_() % kFloatCount].dtype;
    const DType to = reference::kFormats[random_() % kFloatCount].dtype;
    const DType wire = reference::kFormats[random_() % kFloatCount].dtype;
    const bool useWire = random_() % 3 == 0;
    const std::vector<int64_t> shape = randomShape(random_);
    RandomView dst(to, shape, false, random_);
    RandomView src(from, shape, true, random_);
    src.fill(random_);
    const std::vector<unsigned char> before = dst.memory;
    std::vector<std::pair<size_t, uint64_t>> elements;
    forEachIndex(shape, [&](const std::vector<int64_t>& index) {
      const uint64_t code = src.element(index);
      const uint64_t value = useWire ? reference::cast(wire, to, reference::cast(from, wire, code))
                                     : reference::cast(from, to, code);
      elements.emplace_back(dst.offset(index), value);
    });
    const auto& [path, table] = paths[static_cast<size_t>(round) % paths.size()];
    SCOPED_TRACE(describe(dst, src) + " on " + nameOf(path));
    const StridedView target = dst.view();
    detail::moveConvert(*table, &target, 1, src.view(), useWire ? &wire : nullptr, anyStores());
    ASSERT_NO_FATAL_FAILURE(expectElements(dst, before, elements));
  }
}

TEST_F(Strided, MovesToEachOfSeveralOnEveryPath) {
  const auto paths = reference::availablePaths();
  for (int round = 0; round < kRounds; ++round) {
    const bool casts = random_() % 2 == 0;
    const auto any = static_cast<DType>(random_() % kDTypeCount);
    const DType from = casts ? reference::kFormats[random_() % kFloatCount].dtype : any;
    const DType to = casts ? reference::kFormats[random_() % kFloatCount].dtype : any;
    const std::vector<int64_t> shape = randomShape(random_);
    RandomView src(from, shape, true, random_);
    if (casts) {
      src.fill(random_);
    } else {
      for (unsigned char& byte : src.memory) byte = static_cast<unsigned char>(random_());
    }
    std::vector<RandomView> dst;
    std::vector<std::vector<unsigned char>> before;
    std::vector<StridedView> views;
    const size_t count = 1 + random_() % 4;
    for (size_t i = 0; i < count; ++i) {
      dst.emplace_back(to, shape, false, random_);
      before.push_back(dst.back().memory);
    }
    for (RandomView& one : dst) views.push_back(one.view());
    const auto& [path, table] = paths[static_cast<size_t>(round) % paths.size()];
    detail::moveConvert(*table, views.data(), static_cast<uint32_t>(count), src.view(), nullptr,
                        anyStores());
    for (size_t i = 0; i < count; ++i) {
      SCOPED_TRACE(describe(dst[i], src) + " on " + nameOf(path));
      std::vector<std::pair<size_t, uint64_t>> elements;
      forEachIndex(shape, [&](const std::vector<int64_t>& index) {
        const uint64_t code = src.element(index);
        elements.emplace_back(dst[i].offset(index), casts ? reference::cast(from, to, code) : code);
      });
      ASSERT_NO_FATAL_FAILURE(expectElements(dst[i], before[i], elements));
    }
  }
}

TEST_F(Strided, FoldsOnEveryPath) {
  const auto paths = reference::availablePaths();
  const ReduceOp ops[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct,
                          ReduceOp::kAvg};
  for (int round = 0; round < kRounds; ++round) {
    const auto dtype = static_cast<DType>(random_() % kDTypeCount);
    const ReduceOp op = ops[random_() % 5];
    if (!canReduce(dtype, op)) continue;
    const bool isFloat = floatIndex(dtype) >= 0;
    const DType to = isFloat ? reference::kFormats[random_() % kFloatCount].dtype : dtype;
    const std::vector<int64_t> shape = randomShape(random_);
    RandomView dst(to, shape, false, random_);
    std::vector<RandomView> src;
    const size_t sources = 1 + random_() % 4;
    for (size_t i = 0; i < sources; ++i) {
      src.emplace_back(dtype, shape, true, random_);
      src.back().fill(random_);
    }
    const std::vector<unsigned char> before = dst.memory;
    std::vector<std::pair<size_t, uint64_t>> elements;
    forEachIndex(shape, [&](const std::vector<int64_t>& index) {
      std::vector<uint64_t> codes;
      for (const RandomView& one : src) codes.push_back(one.element(index));
      const uint64_t folded = reference::fold(dtype, codes, op);
      elements.emplace_back(dst.offset(index), reference::cast(dtype, to, folded));
    });
    std::vector<StridedView> views;
    for (RandomView& one : src) views.push_back(one.view());
    const StridedView target = dst.view();
    const auto& [path, table] = paths[static_cast<size_t>(round) % paths.size()];
    SCOPED_TRACE(describe(dst, src[0]) + " on " + nameOf(path));
    detail::fold(*table, &target, 1, views.data(), static_cast<uint32_t>(sources), op, nullptr,
                 anyStores());
    ASSERT_NO_FATAL_FAILURE(expectElements(dst, before, elements));
  }
}

// Rows with gaps on either side, in two dimensions of which either is the longer: far apart or
// near, of whole lines or not, cached or streamed.
TEST_F(Strided, RowsWithGaps) {
  for (const int64_t row : {1, 3, 16, 17, 32, 48, 64, 256, 300, 512}) {
    for (const int64_t gap : {0, 1, 16, 112}) {
      if (reference::few() && random_() % 3 != 0) continue;
      for (const bool manyOuter : {false, true}) {
        for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
          for (const DType to : {DType::kF32, DType::kBF16}) {
            const int64_t shape[] = {manyOuter ? 75 : 3, manyOuter ? 3 : 75, row};
            const int64_t near[] = {shape[1] * row, row, 1};
            const int64_t apart[] = {row + gap, shape[0] * (row + gap), 1};
            const auto cells = static_cast<size_t>(shape[0] * shape[1] * (row + gap));
            std::vector<float> memory(cells + 16);
            for (float& value : memory) value = static_cast<float>(random_() % 251);
            alignas(64) static unsigned char out[75 * 3 * 624 * 4];
            for (const bool scatter : {false, true}) {
              const int64_t* from = scatter ? near : apart;
              const int64_t* into = scatter ? apart : near;
              std::memset(out, 0xa5, sizeof out);
              std::vector<unsigned char> expected(out, out + sizeof out);
              forEachIndex({shape[0], shape[1], row}, [&](const std::vector<int64_t>& index) {
                int64_t at[2] = {};
                for (size_t d = 0; d < 3; ++d) {
                  at[0] += index[d] * from[d];
                  at[1] += index[d] * into[d];
                }
                const float value = memory[static_cast<size_t>(at[0])];
                uint32_t bits;
                std::memcpy(&bits, &value, sizeof bits);
                // Whole numbers below 256 keep every bit in bf16.
                if (to == DType::kBF16) bits >>= 16;
                std::memcpy(&expected[static_cast<size_t>(at[1]) * sizeOf(to)], &bits, sizeOf(to));
              });
              TMOVE_CVT({out, to, 3, shape, into}, {memory.data(), DType::kF32, 3, shape, from}, to,
                        stores);
              ASSERT_EQ(std::memcmp(out, expected.data(), sizeof out), 0)
                  << "row " << row << " gap " << gap << " scatter " << scatter;
            }
          }
        }
      }
    }
  }
}

// Every cast, of rows around the lengths that loops of rows are written for, that lie apart on one
// side or both; more rows along either dimension than are visited at a time.
TEST_F(Strided, ShortRowsCastOnEveryPath) {
  const auto paths = reference::availablePaths();
  const int64_t lengths[] = {1,  3,  4,  5,  7,  8,  9,   15,  16, 17,
                             31, 32, 33, 63, 64, 65, 100, 127, 128};
  constexpr int64_t kOuter[][2] = {{3, 70}, {70, 3}, {19, 40}, {1, 33}};
  constexpr size_t kCells = 760 * (128 + 7) + 64;
  const auto gap = [&] { return static_cast<int64_t>(random_() % 8); };
  for (const auto& from : reference::kFormats) {
    for (const auto& to : reference::kFormats) {
      if (from.dtype == to.dtype) continue;
      const size_t fromBytes = sizeOf(from.dtype);
      const size_t toBytes = sizeOf(to.dtype);
      std::vector<unsigned char> source(kCells * fromBytes);
      std::vector<uint64_t> casts(kCells);
      for (size_t i = 0; i < kCells; ++i) {
        const uint64_t code = reference::randomElement(from.dtype, random_);
        std::memcpy(&source[i * fromBytes], &code, fromBytes);
        casts[i] = reference::cast(from.dtype, to.dtype, code);
      }
      for (const int64_t length : lengths) {
        for (const auto& [path, table] : paths) {
          if (reference::few() && random_() % 4 != 0) continue;
          const int64_t* outer = kOuter[random_() % 4];
          const std::vector<int64_t> shape = {outer[0], outer[1], length};
          const bool swapped = random_() % 2 == 0;
          int64_t strides[2][3];
          for (const int side : {0, 1}) {
            const int inner = (side == 0) == swapped ? 0 : 1;
            strides[side][2] = 1;
            strides[side][inner] = length + gap() * static_cast<int64_t>(random_() % 2);
            strides[side][1 - inner] = strides[side][inner] * shape[static_cast<size_t>(inner)];
          }
          const size_t skew = random_() % 64;
          std::vector<unsigned char> out(skew + kCells * toBytes, 0xa5);
          std::vector<unsigned char> expected = out;
          forEachIndex(shape, [&](const std::vector<int64_t>& index) {
            int64_t at[2] = {};
            for (size_t d = 0; d < 3; ++d) {
              at[0] += index[d] * strides[0][d];
              at[1] += index[d] * strides[1][d];
            }
            std::memcpy(&expected[skew + static_cast<size_t>(at[0]) * toBytes],
                        &casts[static_cast<size_t>(at[1])], toBytes);
          });
          const StridedView dst = {&out[skew], to.dtype, 3, shape.data(), strides[0]};
          detail::moveConvert(*table, &dst, 1,
                              {source.data(), from.dtype, 3, shape.data(), strides[1]}, nullptr,
                              anyStores());
          ASSERT_TRUE(out == expected)
              << from.name << " to " << to.name << " on " << nameOf(path) << ", shape "
              << testing::PrintToString(shape) << " skew " << skew << (swapped ? " swapped" : "");
        }
      }
    }
  }
}

// Every cast and every size of element, of views whose rows are contiguous along different
// dimensions: more rows and columns than a tile has, or fewer; with gaps, aligned to lines or not.
TEST_F(Strided, TransposesOnEveryPath) {
  const auto paths = reference::availablePaths();
  const std::vector<std::vector<int64_t>> shapes = {
      {150, 210}, {64, 256}, {33, 290}, {7, 600}, {8, 6, 5, 70}, {16, 12, 4, 40}, {3, 2, 65, 9, 4}};
  std::vector<std::pair<DType, DType>> pairs;
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kU32, DType::kI64})
    pairs.emplace_back(dtype, dtype);
  for (const auto& from : reference::kFormats) {
    for (const auto& to : reference::kFormats) pairs.emplace_back(from.dtype, to.dtype);
  }
  constexpr size_t kCells = 80000;
  for (const auto& [from, to] : pairs) {
    const size_t fromBytes = sizeOf(from);
    const size_t toBytes = sizeOf(to);
    std::vector<unsigned char> source(kCells * fromBytes);
    std::vector<uint64_t> casts(kCells);
    for (size_t i = 0; i < kCells; ++i) {
      casts[i] = from == to ? random_() : reference::randomElement(from, random_);
      std::memcpy(&source[i * fromBytes], &casts[i], fromBytes);
      if (from != to) casts[i] = reference::cast(from, to, casts[i]);
    }
    for (const auto& [path, table] : paths) {
      for (const std::vector<int64_t>& shape : shapes) {
        if (random_() % (reference::few() ? 8 : 2) != 0) continue;
        // The target's dimensions are in order. The source's are reversed, or in any order.
        std::vector<size_t> order(shape.size());
        std::iota(order.rbegin(), order.rend(), size_t{0});
        if (random_() % 3 == 0) std::shuffle(order.begin(), order.end(), random_);
        const auto stridesOf = [&](bool isSource) {
          std::vector<int64_t> strides(shape.size());
          int64_t step = 1;
          for (size_t i = shape.size(); i-- > 0;) {
            const size_t d = isSource ? order[i] : i;
            strides[d] = step;
            step *= shape[d];
            const int64_t gaps[] = {0, 0, 1, 64, 64 - step % 64};
            if (i + 1 == shape.size()) step += std::min(step, gaps[random_() % 5]);
          }
          return strides;
        };
        const std::vector<int64_t> into = stridesOf(false);
        const std::vector<int64_t> outOf = stridesOf(true);
        const size_t skew = random_() % 2 == 0 ? 0 : random_() % 64;
        std::vector<unsigned char> memory(kCells * toBytes + 192, 0xa5);
        const size_t first = -reinterpret_cast<uintptr_t>(memory.data()) % 64 + skew;
        std::vector<unsigned char> expected = memory;
        forEachIndex(shape, [&](const std::vector<int64_t>& index) {
          int64_t at[2] = {};
          for (size_t d = 0; d < shape.size(); ++d) {
            at[0] += index[d] * into[d];
            at[1] += index[d] * outOf[d];
          }
          std::memcpy(&expected[first + static_cast<size_t>(at[0]) * toBytes],
                      &casts[static_cast<size_t>(at[1])], toBytes);
        });
        const auto ndim = static_cast<uint32_t>(shape.size());
        const StridedView dst = {&memory[first], to, ndim, shape.data(), into.data()};
        const Stores stores = anyStores();
        detail::moveConvert(*table, &dst, 1,
                            {source.data(), from, ndim, shape.data(), outOf.data()}, nullptr,
                            stores);
        ASSERT_TRUE(memory == expected)
            << nameOf(from) << " to " << nameOf(to) << " on " << nameOf(path) << ", shape "
            << testing::PrintToString(shape) << " source " << testing::PrintToString(outOf)
            << " target " << testing::PrintToString(into) << " skew " << skew << " stores "
            << static_cast<int>(stores);
      }
    }
  }
}

TEST_F(Strided, StreamedCastsHaveTheBitsOfOthers) {
  for (const auto& [path, table] : reference::availablePaths()) {
    for (int from = 0; from < kFloatCount; ++from) {
      for (int to = 0; to < kFloatCount; ++to) {
        if (table->cast[from][to] == nullptr) continue;
        ASSERT_NE(nullptr, table->castStreaming[from][to]) << from << " to " << to;
        const DType source = reference::kFormats[from].dtype;
        const size_t bytes = sizeOf(reference::kFormats[to].dtype);
        for (const size_t count : {0, 1, 7, 31, 32, 64, 65, 200, 517}) {
          for (const size_t skew : {size_t{0}, bytes, size_t{3}, 64 - bytes}) {
            std::vector<unsigned char> in(count * sizeOf(source) + 8);
            for (size_t i = 0; i < count; ++i) {
              const uint64_t code = reference::randomElement(source, random_);
              std::memcpy(&in[i * sizeOf(source)], &code, sizeOf(source));
            }
            std::vector<unsigned char> expected(count * bytes + 192, 0xa5);
            std::vector<unsigned char> out = expected;
            const size_t first = -reinterpret_cast<uintptr_t>(out.data()) % 64 + skew;
            table->cast[from][to](&expected[first], in.data(), count);
            table->castStreaming[from][to](&out[first], in.data(), count);
            ASSERT_TRUE(out == expected) << nameOf(path) << ": " << from << " to " << to << ", "
                                         << count << " at " << skew;
          }
        }
      }
    }
  }
}

TEST(CopyBytes, EveryLengthAndAlignmentOnEveryPath) {
  std::vector<unsigned char> source(9000);
  std::iota(source.begin(), source.end(), static_cast<unsigned char>(3));
  for (size_t length = 0; length < 8500; length += length < 700 ? 1 : 97) {
    for (size_t skew = 0; skew < 64; skew += 13) {
      std::vector<unsigned char> expected(length + 192, 0xa5);
      std::copy_n(source.begin() + 7, length, expected.begin() + static_cast<int64_t>(skew));
      std::vector<unsigned char> out(length + 192, 0xa5);
      copyBytes(&out[skew], &source[7], length);
      ASSERT_EQ(out, expected) << length << " bytes at " << skew;
      if (length <= kShortCopyBytes) continue;
      for (const auto& [path, table] : reference::availablePaths()) {
        out.assign(length + 192, 0xa5);
        table->copy(&out[skew], &source[7], length);
        ASSERT_EQ(out, expected) << length << " bytes at " << skew << " on " << nameOf(path);
        out.assign(length + 192, 0xa5);
        table->stream(&out[skew], &source[7], length);
        ASSERT_EQ(out, expected) << length << " bytes at " << skew << " on " << nameOf(path);
      }
    }
  }
}

TEST(CopyBytes, StreamingCopiesAreComplete) {
  const size_t length = kStreamingCopyBytes + 12345;
  std::vector<unsigned char> source(length);
  for (size_t i = 0; i < length; ++i) source[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  for (const auto& [path, table] : reference::availablePaths()) {
    std::vector<unsigned char> out(length + 70, 0xa5);
    table->copy(&out[3], source.data(), length);
    EXPECT_EQ(std::memcmp(&out[3], source.data(), length), 0) << nameOf(path);
    EXPECT_EQ(out[2], 0xa5);
    EXPECT_EQ(out[length + 3], 0xa5);
  }
}

TEST(CopyBytes, OntoItself) {
  std::vector<unsigned char> data(5000);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(0));
  const std::vector<unsigned char> before = data;
  for (const size_t length : {0, 1, 100, 256, 257, 5000}) {
    copyBytes(data.data(), data.data(), length);
    ASSERT_EQ(data, before);
  }
}

}  // namespace strided_test
}  // namespace windlass
