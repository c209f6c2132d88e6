// SPDX-License-Identifier: Apache-2.0
// Which vector path runs, and that the caller's float mode does not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "native/isa/sim/float_mode.h"
#include "tests/native/isa/reference.h"

namespace windlass {
namespace dispatch_test {

class VectorPath : public testing::TestWithParam<int> {};

// The other suites compare availablePaths().
TEST_P(VectorPath, IsCompared) {
  const auto path = static_cast<Path>(GetParam());
  if (tableFor(path) == nullptr) {
    GTEST_SKIP() << "this CPU lacks " << nameOf(path)
                 << ": its loops are compared on a CPU that has it";
  }
  int compared = 0;
  for (const auto& available : reference::availablePaths()) compared += available.path == path;
  EXPECT_EQ(compared, 1);
}

INSTANTIATE_TEST_SUITE_P(All, VectorPath, testing::Range(0, kPathCount),
                         [](const testing::TestParamInfo<int>& tested) {
                           std::string name = nameOf(static_cast<Path>(tested.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Dispatch, EveryCpuHasThePortablePath) {
  EXPECT_NE(tableFor(Path::kPortable), nullptr);
}

TEST(Dispatch, EveryLoopThatTheTypesPromiseExists) {
  for (const auto& [path, table] : reference::availablePaths()) {
    for (const auto& row : table->cast) {
      for (const CastLoop loop : row) EXPECT_NE(loop, nullptr) << nameOf(path);
    }
    for (int type = 0; type < kDTypeCount; ++type) {
      for (int op = 0; op < kReduceOpCount; ++op) {
        if (op == static_cast<int>(ReduceOp::kAvg)) continue;
        EXPECT_EQ(table->fold[op][type] != nullptr,
                  canReduce(static_cast<DType>(type), static_cast<ReduceOp>(op)))
            << nameOf(path) << " type " << type << " op " << op;
      }
    }
  }
}

std::string quoted(const char* value) {
  return std::string("'") + value + "'";
}

TEST(Dispatch, RequestsAreObeyedOrExplained) {
  const PathChoice best = choosePath(nullptr);
  EXPECT_STREQ(best.error, "");
  EXPECT_NE(tableFor(best.path), nullptr);
  EXPECT_EQ(choosePath("").path, best.path);
  for (int i = 0; i < kPathCount; ++i) {
    const auto path = static_cast<Path>(i);
    const PathChoice choice = choosePath(nameOf(path));
    if (tableFor(path) != nullptr) {
      EXPECT_EQ(choice.path, path);
      EXPECT_STREQ(choice.error, "");
    } else {
      EXPECT_EQ(choice.path, best.path);
      EXPECT_NE(std::string(choice.error).find(quoted(nameOf(path))), std::string::npos);
    }
  }
  for (const char* wrong : {"sse9", "AVX2", "avx", " avx2", "avx2 "}) {
    EXPECT_NE(std::string(choosePath(wrong).error).find(quoted(wrong)), std::string::npos) << wrong;
    EXPECT_EQ(choosePath(wrong).path, best.path) << wrong;
  }
  EXPECT_LT(std::strlen(choosePath(std::string(9999, 'x').c_str()).error), 150u);
}

TEST(Dispatch, TheEnvironmentRules) {
  const PathChoice expected = choosePath(std::getenv("WINDLASS_ISA"));
  EXPECT_STREQ(isaPathName(), nameOf(expected.path));
  EXPECT_STREQ(isaPathError(), *expected.error == '\0' ? nullptr : expected.error);
  EXPECT_EQ(&activeTable(), tableFor(expected.path));
}

// Rounding toward zero, subnormals flushed at both ends; on aarch64 those of f16 too, and every NaN
// the default one.
#if defined(__x86_64__)
constexpr uint64_t kHostile = 0x1f80 | 0x8000 | 0x6000 | 0x0040;
#else
constexpr uint64_t kHostile = 3u << 22 | 1u << 19 | 1u << 24 | 1u << 25;
#endif

TEST(FloatMode, TheCallersDoesNotMatterAndIsKept) {
  const uint64_t saved = FloatMode::read();
  std::mt19937_64 random(13);
  const int64_t count = 2000;
  for (const auto& from : reference::kFormats) {
    for (const auto& to : reference::kFormats) {
      const size_t fromBytes = sizeOf(from.dtype);
      const size_t toBytes = sizeOf(to.dtype);
      std::vector<uint64_t> codes(static_cast<size_t>(count));
      std::vector<unsigned char> source(codes.size() * fromBytes);
      std::vector<unsigned char> other(codes.size() * fromBytes);
      for (size_t i = 0; i < codes.size(); ++i) {
        codes[i] = reference::randomElement(from.dtype, random);
        std::memcpy(&source[i * fromBytes], &codes[i], fromBytes);
      }
      for (size_t i = 0; i < codes.size(); ++i) {
        std::memcpy(&other[i * fromBytes], &codes[codes.size() - 1 - i], fromBytes);
      }
      for (const auto& [path, table] : reference::availablePaths()) {
        std::vector<unsigned char> out(codes.size() * toBytes);
        std::vector<unsigned char> sum(codes.size() * toBytes);
        const StridedView dst = reference::flat(out.data(), to.dtype, &count);
        const StridedView sumDst = reference::flat(sum.data(), to.dtype, &count);
        const StridedView src[] = {reference::flat(source.data(), from.dtype, &count),
                                   reference::flat(other.data(), from.dtype, &count)};
        FloatMode::write(kHostile);
        detail::moveConvert(*table, &dst, 1, src[0], nullptr);
        detail::fold(*table, &sumDst, 1, src, 2, ReduceOp::kSum, nullptr);
        const uint64_t after = FloatMode::read();
        FloatMode::write(saved);
        ASSERT_EQ(after & ~FloatMode::kStickyFlags, kHostile);
        for (size_t i = 0; i < codes.size(); ++i) {
          ASSERT_EQ(reference::loadElement(&out[i * toBytes], toBytes),
                    reference::cast(from.dtype, to.dtype, codes[i]))
              << from.name << " to " << to.name << " on " << nameOf(path);
          const uint64_t folded =
              reference::fold(from.dtype, {codes[i], codes[codes.size() - 1 - i]}, ReduceOp::kSum);
          ASSERT_EQ(reference::loadElement(&sum[i * toBytes], toBytes),
                    reference::cast(from.dtype, to.dtype, folded))
              << from.name << " to " << to.name << " on " << nameOf(path);
        }
      }
    }
  }
}

}  // namespace dispatch_test
}  // namespace windlass
