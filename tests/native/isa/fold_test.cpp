// SPDX-License-Identifier: Apache-2.0
// TFOLD on every vector path against a fold of one element at a time, bit for bit.
#include <gtest/gtest.h>

#include "tests/native/isa/reference.h"

namespace windlass {
namespace fold_test {

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct,
                             ReduceOp::kAvg, ReduceOp::kAnd, ReduceOp::kOr,  ReduceOp::kXor,
                             ReduceOp::kPremultipliedSum};

struct Sources {
  DType dtype;
  int64_t count;
  std::vector<std::vector<unsigned char>> data;

  Sources(DType type, int64_t n, size_t sources, std::mt19937_64& random)
      : dtype(type), count(n), data(sources) {
    const size_t bytes = sizeOf(dtype);
    for (auto& one : data) {
      one.resize(static_cast<size_t>(count) * bytes);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const uint64_t code = reference::randomElement(dtype, random);
        std::memcpy(&one[i * bytes], &code, bytes);
      }
    }
  }

  std::vector<StridedView> views() {
    std::vector<StridedView> result;
    for (auto& one : data) result.push_back(reference::flat(one.data(), dtype, &count));
    return result;
  }

  uint64_t expected(size_t i, ReduceOp op) const {
    const size_t bytes = sizeOf(dtype);
    std::vector<uint64_t> codes;
    for (const auto& one : data) codes.push_back(reference::loadElement(&one[i * bytes], bytes));
    return reference::fold(dtype, codes, op);
  }
};

TEST(Fold, EveryTypeOpAndSourceCountMatchesReference) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const size_t bytes = sizeOf(dtype);
    for (const ReduceOp op : kOps) {
      if (!canReduce(dtype, op)) continue;
      for (const size_t sources : {1, 2, 3, 4, 7}) {
        for (const int64_t count : {0, 1, 5, 31, 64, 1023, 1025, 2500}) {
          if (reference::few() && count > 64 && random() % 4 != 0) continue;
          Sources input(dtype, count, sources, random);
          const std::vector<StridedView> views = input.views();
          std::vector<uint64_t> expected;
          for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
            expected.push_back(input.expected(i, op));
          }
          for (const auto& [path, table] : reference::availablePaths()) {
            // As rows, and by the traversal, which a wire asks for even where it changes nothing.
            for (const DType* wire : {static_cast<const DType*>(nullptr), &dtype}) {
              std::vector<unsigned char> out(static_cast<size_t>(count) * bytes + 4, 0xa5);
              const StridedView dst = reference::flat(out.data(), dtype, &count);
              detail::fold(*table, &dst, 1, views.data(), static_cast<uint32_t>(sources), op, wire);
              for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
                ASSERT_EQ(reference::loadElement(&out[i * bytes], bytes), expected[i])
                    << "dtype " << type << " op " << static_cast<int>(op) << " sources " << sources
                    << " element " << i << " of " << count << " on " << nameOf(path)
                    << (wire == nullptr ? "" : " with a wire");
              }
              for (size_t i = out.size() - 4; i < out.size(); ++i) ASSERT_EQ(out[i], 0xa5);
            }
          }
        }
      }
    }
  }
}

TEST(Fold, ReducesBeforeItCastsAndRoundsOnTheWire) {
  std::mt19937_64 random(3);
  const int64_t count = 1500;
  for (const auto& from : reference::kFormats) {
    for (const auto& wire : reference::kFormats) {
      for (const auto& to : reference::kFormats) {
        Sources input(from.dtype, count, 3, random);
        const std::vector<StridedView> views = input.views();
        const size_t bytes = sizeOf(to.dtype);
        std::vector<unsigned char> out(static_cast<size_t>(count) * bytes);
        const StridedView dst = reference::flat(out.data(), to.dtype, &count);
        TFOLD(&dst, 1, views.data(), 3, ReduceOp::kSum, wire.dtype);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          const uint64_t folded = input.expected(i, ReduceOp::kSum);
          const uint64_t carried = reference::cast(from.dtype, wire.dtype, folded);
          ASSERT_EQ(reference::loadElement(&out[i * bytes], bytes),
                    reference::cast(wire.dtype, to.dtype, carried))
              << from.name << " to " << wire.name << " to " << to.name << ", element " << i;
        }
      }
    }
  }
}

TEST(Fold, SeveralDestinationsOfTheirOwnTypeAndStride) {
  std::mt19937_64 random(5);
  constexpr int64_t kRows = 37;
  constexpr int64_t kCols = 53;
  const int64_t shape[] = {kRows, kCols};
  const int64_t rowMajor[] = {kCols, 1};
  const int64_t colMajor[] = {1, kRows};
  const int64_t padded[] = {kCols * 2 + 3, 2};
  Sources input(DType::kBF16, kRows * kCols, 4, random);
  std::vector<StridedView> views;
  for (auto& one : input.data) views.push_back({one.data(), DType::kBF16, 2, shape, rowMajor});
  std::vector<uint16_t> same(kRows * kCols);
  std::vector<uint32_t> turned(kRows * kCols);
  std::vector<uint8_t> sparse(static_cast<size_t>(kRows * padded[0]));
  const StridedView dst[] = {{same.data(), DType::kBF16, 2, shape, rowMajor},
                             {turned.data(), DType::kF32, 2, shape, colMajor},
                             {sparse.data(), DType::kF8E4M3, 2, shape, padded}};
  TFOLD(dst, 3, views.data(), 4, ReduceOp::kAvg);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) {
      const auto i = static_cast<size_t>(r * kCols + c);
      const uint64_t folded = input.expected(i, ReduceOp::kAvg);
      ASSERT_EQ(same[i], folded);
      ASSERT_EQ(turned[static_cast<size_t>(c * kRows + r)],
                reference::cast(DType::kBF16, DType::kF32, folded));
      ASSERT_EQ(sparse[static_cast<size_t>(r * padded[0] + c * padded[1])],
                reference::cast(DType::kBF16, DType::kF8E4M3, folded));
    }
  }
}

// More views than are at hand at a time, in lists and in arrays: the same bits.
TEST(Fold, ListsOfAnyNumberOfViews) {
  std::mt19937_64 random(11);
  constexpr int64_t kRows = 19;
  constexpr int64_t kCols = 70;
  const int64_t shape[] = {kRows, kCols};
  const int64_t rowMajor[] = {kCols, 1};
  const int64_t colMajor[] = {1, kRows};
  for (const uint32_t targets : {1u, 31u, 32u, 33u, 65u, 150u}) {
    for (const uint32_t sources : {1u, 2u, 32u, 64u, 65u, 200u}) {
      Sources input(DType::kF16, kRows * kCols, sources, random);
      const auto source = [&](uint32_t i) {
        return StridedView{input.data[i].data(), DType::kF16, 2, shape,
                           i % 3 == 2 ? colMajor : rowMajor};
      };
      std::vector<std::vector<float>> out[3];
      for (auto& each : out) each.resize(targets, std::vector<float>(kRows * kCols));
      const auto target = [&](int of) {
        return [&out, &colMajor, &rowMajor, &shape, of](uint32_t i) {
          return StridedView{out[of][i].data(), DType::kF32, 2, shape,
                             i % 2 == 1 ? colMajor : rowMajor};
        };
      };
      std::vector<StridedView> from, into;
      for (uint32_t i = 0; i < sources; ++i) from.push_back(source(i));
      for (uint32_t i = 0; i < targets; ++i) into.push_back(target(0)(i));
      const auto listed = target(1), streamed = target(2);
      if (sources == 1) {
        TMOVE_CVT(into.data(), targets, from[0], DType::kBF16, Stores::kCached);
        TMOVE_CVT(viewsAt(targets, listed), from[0], DType::kBF16, Stores::kCached);
        TMOVE_CVT(viewsAt(targets, streamed), from[0], DType::kBF16, Stores::kStreaming);
      } else {
        TFOLD(into.data(), targets, from.data(), sources, ReduceOp::kSum, DType::kBF16);
        TFOLD(viewsAt(targets, listed), viewsAt(sources, source), ReduceOp::kSum, DType::kBF16,
              Stores::kCached);
        TFOLD(viewsAt(targets, streamed), viewsAt(sources, source), ReduceOp::kSum, DType::kBF16,
              Stores::kStreaming);
      }
      // One element by the reference, all others as in the arrays.
      for (uint32_t i = 0; i < targets; ++i) {
        ASSERT_EQ(0, std::memcmp(out[0][i].data(), out[1][i].data(), out[0][i].size() * 4))
            << targets << " targets, " << sources << " sources, target " << i;
        ASSERT_EQ(0, std::memcmp(out[0][i].data(), out[2][i].data(), out[0][i].size() * 4))
            << targets << " targets, " << sources << " sources, target " << i << ", streamed";
      }
      std::vector<uint64_t> codes;
      for (uint32_t i = 0; i < sources; ++i)
        codes.push_back(reference::loadElement(input.data[i].data(), 2));
      const uint64_t folded = sources == 1 ? codes[0]
                                           : reference::fold(DType::kF16, codes, ReduceOp::kSum);
      const uint64_t wire = reference::cast(DType::kF16, DType::kBF16, folded);
      EXPECT_EQ(reference::cast(DType::kBF16, DType::kF32, wire),
                reference::loadElement(reinterpret_cast<unsigned char*>(out[1].back().data()), 4));
    }
  }
}

TEST(Fold, InPlaceIntoAnySource) {
  std::mt19937_64 random(9);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64, DType::kF8E5M2}) {
    for (size_t target = 0; target < 3; ++target) {
      Sources input(dtype, 3000, 3, random);
      const Sources before = input;
      std::vector<StridedView> views = input.views();
      TFOLD(&views[target], 1, views.data(), 3, ReduceOp::kSum);
      const size_t bytes = sizeOf(dtype);
      for (size_t i = 0; i < 3000; ++i) {
        ASSERT_EQ(reference::loadElement(&input.data[target][i * bytes], bytes),
                  before.expected(i, ReduceOp::kSum));
      }
    }
  }
}

// A fold of no rows, and of the same with one more row, which the identity does not change.
TEST(Fold, OfNoRowsIsTheIdentity) {
  std::mt19937_64 random(13);
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    for (const ReduceOp op : kOps) {
      if (!canReduce(dtype, op) || op == ReduceOp::kAvg) continue;
      for (const int64_t count : {0, 1, 1025, 2500}) {
        Sources input(dtype, count, 1, random);
        const Sources before = input;
        const size_t bytes = sizeOf(dtype);
        // For bools, only 0 and 1 are values.
        if (dtype == DType::kBool)
          for (auto& each : input.data[0]) each &= 1;
        const Sources given = input;
        std::vector<unsigned char> identity(before.data[0].size() + 4, 0xa5);
        const auto none = [](uint32_t) -> void* { return nullptr; };
        const auto target = [&](uint32_t) { return identity.data(); };
        TFOLD(rowsAt(1, target), rowsAt(0, none), count, dtype, op, 0, Stores::kCached);
        for (size_t i = identity.size() - 4; i < identity.size(); ++i) ASSERT_EQ(identity[i], 0xa5);
        std::vector<unsigned char> out(before.data[0].size());
        const auto both = [&](uint32_t s) {
          return s == 0 ? identity.data() : input.data[0].data();
        };
        const auto result = [&](uint32_t) { return out.data(); };
        TFOLD(rowsAt(1, result), rowsAt(2, both), count, dtype, op, 2, Stores::kCached);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          // -0 + 0 is 0.
          const uint64_t alone = given.expected(i, op);
          const uint64_t sum = reference::loadElement(&out[i * bytes], bytes);
          const bool isZero = isFloat(dtype) && (alone << (65 - 8 * bytes)) == 0;
          ASSERT_TRUE(sum == alone || (isZero && sum == 0))
              << "dtype " << type << " op " << static_cast<int>(op) << ": " << sum << ", not "
              << alone;
        }
      }
    }
  }
}

TEST(Fold, OrderIsTheSources) {
  // In f32, (1e8 + 1) - 1e8 = 0 and (1e8 - 1e8) + 1 = 1.
  float big = 1e8f;
  float one = 1.0f;
  float minus = -1e8f;
  float out = -1.0f;
  const auto view = [](float* x) { return StridedView{x, DType::kF32, 0, nullptr, nullptr}; };
  const StridedView dst = view(&out);
  const StridedView lost[] = {view(&big), view(&one), view(&minus)};
  TFOLD(&dst, 1, lost, 3, ReduceOp::kSum);
  EXPECT_EQ(out, 0.0f);
  const StridedView kept[] = {view(&big), view(&minus), view(&one)};
  TFOLD(&dst, 1, kept, 3, ReduceOp::kSum);
  EXPECT_EQ(out, 1.0f);
}

TEST(Fold, CanReduceFollowsTheTypes) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    for (const ReduceOp op : kOps) {
      bool expected = dtype != DType::kC64 && dtype != DType::kF8E8M0 &&
                      dtype != DType::kF8E4M3FNUZ && dtype != DType::kF8E5M2FNUZ;
      if (dtype == DType::kBool) expected = op == ReduceOp::kMax || op == ReduceOp::kMin;
      const bool isOfFloats = reference::formatOf(dtype) != nullptr;
      if (!isOfFloats && op == ReduceOp::kAvg) expected = false;
      if (isOfFloats && isBitwise(op)) expected = false;
      if (op == ReduceOp::kPremultipliedSum) expected = false;
      EXPECT_EQ(canReduce(dtype, op), expected) << type << " " << static_cast<int>(op);
    }
  }
}

}  // namespace fold_test
}  // namespace windlass
