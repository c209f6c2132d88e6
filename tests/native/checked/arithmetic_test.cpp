// SPDX-License-Identifier: Apache-2.0
// What vector instructions compute, against slow, obvious arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/native/checked/test_machine.h"
#include "tests/native/isa/reference.h"

namespace windlass_test {
namespace arithmetic_test {

namespace reference = windlass::reference;
using checked::kA2A3;
using checked::kA5;
using pto::RoundMode;
using pto::SaturationMode;
using windlass::DType;

constexpr size_t kCount = 16 * 32;

// Result of one instruction on `from`, element by element, one chunk at a time.
template <typename To, typename From, typename Instruction>
std::vector<To> through(const checked::Architecture& architecture, std::vector<From> from,
                        Instruction instruction) {
  const size_t count = from.size();
  from.resize((count + kCount - 1) / kCount * kCount);
  std::vector<To> to(from.size());
  checked::Machine machine({architecture, "arithmetic"});
  machine.memory().add({0, from.data(), from.size() * sizeof(From), false});
  machine.memory().add({0, to.data(), to.size() * sizeof(To), false});
  checked::Core core(machine, 0, 0);
  {
    const checked::Core::Running running(core);
    Tile<From, 16, 32> source(16, 32);
    Tile<To, 16, 32> target(16, 32);
    pto::TASSIGN(source, 0);
    pto::TASSIGN(target, 8192);
    for (size_t at = 0; at < from.size(); at += kCount) {
      auto in = rowsOf(&from[at], 16, 32);
      auto out = rowsOf(&to[at], 16, 32);
      pto::TLOAD(source, in);
      flag(PIPE_MTE2, PIPE_V);
      instruction(target, source);
      flag(PIPE_V, PIPE_MTE3);
      pto::TSTORE(out, target);
      flag(PIPE_MTE3, PIPE_MTE2);
    }
  }
  core.finish();
  EXPECT_EQ(machine.report(), "");
  to.resize(count);
  return to;
}

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& from, RoundMode mode,
                          const checked::Architecture& architecture = kA2A3) {
  return through<To>(architecture, from,
                     [mode](auto& dst, auto& src) { pto::TCVT(dst, src, mode); });
}

template <typename T>
std::vector<T> randomElements(size_t count, std::mt19937_64& random) {
  std::vector<T> elements(count);
  for (T& element : elements) {
    element = reference::fromBits<T>(reference::randomElement(windlass::DTypeOf<T>::value, random));
  }
  return elements;
}

template <typename From, typename To>
void expectCasts(const checked::Architecture& architecture, std::mt19937_64& random) {
  const auto from = randomElements<From>(4096, random);
  const auto to = converted<To>(from, RoundMode::CAST_RINT, architecture);
  const DType a = windlass::DTypeOf<From>::value;
  const DType b = windlass::DTypeOf<To>::value;
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(reference::toBits(to[i]), reference::cast(a, b, reference::toBits(from[i])))
        << "element " << i;
  }
}

TEST(Arithmetic, FloatsRoundToNearestEvenAsOnSim) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  expectCasts<float, half>(kA2A3, random);
  expectCasts<float, bfloat16_t>(kA2A3, random);
  expectCasts<half, float>(kA2A3, random);
  expectCasts<bfloat16_t, float>(kA2A3, random);
  expectCasts<bfloat16_t, half>(kA5, random);
  expectCasts<float, windlass::float8_e4m3_t>(kA5, random);
  expectCasts<float, windlass::float8_e5m2_t>(kA5, random);
  expectCasts<windlass::float8_e4m3_t, float>(kA5, random);
  expectCasts<windlass::float8_e5m2_t, float>(kA5, random);
}

float valueOf(half code) {
  return reference::fromBits<float>(
      static_cast<uint32_t>(reference::cast(DType::kF16, DType::kF32, code.bits)));
}

// Every mode, by looking for the neighbours of the value among all finite f16.
TEST(Arithmetic, EveryModeRoundsToTheNeighbourThatItNames) {
  std::vector<float> halves;
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float value = valueOf(half{static_cast<uint16_t>(bits)});
    halves.push_back(value);
    if (bits > 0) halves.push_back(-value);
  }
  std::sort(halves.begin(), halves.end());
  std::mt19937_64 random(1);
  std::vector<float> from;
  while (from.size() < 2048) {
    const size_t at = random() % (halves.size() - 1);
    const float quarter = static_cast<float>(random() % 5) / 4;
    from.push_back(halves[at] + (halves[at + 1] - halves[at]) * quarter);
  }
  const auto isOdd = [](float value) {
    const auto bits =
        static_cast<uint32_t>(reference::cast(DType::kF32, DType::kF16, reference::toBits(value)));
    return (bits & 1) != 0;
  };
  for (const RoundMode mode : {RoundMode::CAST_ROUND, RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL,
                               RoundMode::CAST_TRUNC, RoundMode::CAST_ODD, RoundMode::CAST_NONE}) {
    const std::vector<half> to = converted<half>(from, mode);
    for (size_t i = 0; i < from.size(); ++i) {
      const float above = *std::lower_bound(halves.begin(), halves.end(), from[i]);
      const float below = above == from[i]
                              ? above
                              : *std::prev(std::lower_bound(halves.begin(), halves.end(), from[i]));
      const float middle = below + (above - below) / 2;
      const float outer = from[i] < 0 ? below : above;
      const float inner = from[i] < 0 ? above : below;
      float expected = from[i] < middle ? below : above;
      if (mode == RoundMode::CAST_ROUND && from[i] == middle) expected = outer;
      const bool isTie = from[i] == middle;
      if (mode == RoundMode::CAST_NONE && isTie) expected = isOdd(below) ? above : below;
      if (mode == RoundMode::CAST_FLOOR) expected = below;
      if (mode == RoundMode::CAST_CEIL) expected = above;
      if (mode == RoundMode::CAST_TRUNC) expected = inner;
      if (mode == RoundMode::CAST_ODD) expected = isOdd(below) ? below : above;
      ASSERT_EQ(valueOf(to[i]), expected) << from[i] << " mode " << static_cast<int>(mode);
    }
  }
}

TEST(Arithmetic, FloatsBecomeIntegers) {
  const std::vector<float> from = {0.0f,
                                   -0.5f,
                                   0.5f,
                                   1.5f,
                                   2.5f,
                                   -1.5f,
                                   -2.5f,
                                   2.75f,
                                   3e9f,
                                   -3e9f,
                                   40000.0f,
                                   70000.0f,
                                   std::numeric_limits<float>::quiet_NaN()};
  const auto expect = [&](RoundMode mode, std::vector<int32_t> expected) {
    EXPECT_EQ(converted<int32_t>(from, mode), expected) << static_cast<int>(mode);
  };
  constexpr int32_t kMost = INT32_MAX;
  constexpr int32_t kLeast = INT32_MIN;
  expect(RoundMode::CAST_NONE, {0, 0, 0, 1, 2, -1, -2, 2, kMost, kLeast, 40000, 70000, 0});
  expect(RoundMode::CAST_RINT, {0, 0, 0, 2, 2, -2, -2, 3, kMost, kLeast, 40000, 70000, 0});
  expect(RoundMode::CAST_ROUND, {0, -1, 1, 2, 3, -2, -3, 3, kMost, kLeast, 40000, 70000, 0});
  expect(RoundMode::CAST_FLOOR, {0, -1, 0, 1, 2, -2, -3, 2, kMost, kLeast, 40000, 70000, 0});
  expect(RoundMode::CAST_CEIL, {0, 0, 1, 2, 3, -1, -2, 3, kMost, kLeast, 40000, 70000, 0});
  expect(RoundMode::CAST_TRUNC, {0, 0, 0, 1, 2, -1, -2, 2, kMost, kLeast, 40000, 70000, 0});
}

template <typename To, typename From>
std::vector<To> saturated(const checked::Architecture& architecture, const std::vector<From>& from,
                          SaturationMode saturation) {
  return through<To>(architecture, from, [saturation](auto& dst, auto& src) {
    pto::TCVT(dst, src, RoundMode::CAST_RINT, saturation);
  });
}

TEST(Arithmetic, SaturationIsTheDefaultButForSomePairs) {
  const std::vector<float> floats = {40000.0f, -40000.0f};
  const std::vector<int16_t> clamped = {32767, -32768};
  const std::vector<int16_t> cut = {-25536, 25536};
  EXPECT_EQ(converted<int16_t>(floats, RoundMode::CAST_RINT), cut);
  EXPECT_EQ(saturated<int16_t>(kA2A3, floats, SaturationMode::ON), clamped);
  EXPECT_EQ(saturated<int16_t>(kA2A3, floats, SaturationMode::OFF), cut);
  const std::vector<int32_t> integers = {40000, -40000};
  EXPECT_EQ(converted<int16_t>(integers, RoundMode::CAST_RINT), cut);
  EXPECT_EQ(saturated<int16_t>(kA5, integers, SaturationMode::ON), clamped);
  // Only these pairs of types obey the saturation mode on A2/A3.
  const std::vector<float> large = {5e9f};
  EXPECT_EQ(saturated<int32_t>(kA2A3, large, SaturationMode::OFF), std::vector<int32_t>{INT32_MAX});
  EXPECT_EQ(saturated<int32_t>(kA5, large, SaturationMode::OFF), std::vector<int32_t>{705032704});
  const std::vector<int16_t> shorts = {300, -5};
  EXPECT_EQ(converted<uint8_t>(shorts, RoundMode::CAST_RINT, kA5), (std::vector<uint8_t>{255, 0}));
}

TEST(Arithmetic, IntegersBecomeFloatsInOneRounding) {
  const std::vector<int64_t> from = {
      0,         -1,        (int64_t{1} << 24) + 1,        (int64_t{1} << 60) + 1,
      INT64_MAX, INT64_MIN, (int64_t{1} << 54) + (1 << 30)};
  std::vector<float> expected;
  for (const int64_t value : from) expected.push_back(static_cast<float>(value));
  EXPECT_EQ(converted<float>(from, RoundMode::CAST_RINT), expected);
  const std::vector<int32_t> ints = {16777217, 16777219, -16777217};
  EXPECT_EQ(converted<float>(ints, RoundMode::CAST_RINT),
            (std::vector<float>{16777216, 16777220, -16777216}));
}

template <typename T, typename Expected>
void expectOps(const checked::Architecture& architecture, std::mt19937_64& random,
               Expected expected) {
  const auto from = randomElements<T>(1024, random);
  const auto first = reference::toBits(from[0]);
  const auto scalar = reference::fromBits<T>(first);
  const auto each = [&](const char* name, auto instruction, auto of) {
    const std::vector<T> to = through<T>(architecture, from, instruction);
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(reference::toBits(to[i]), of(reference::toBits(from[i]))) << name << " " << i;
    }
  };
  each(
      "TADD", [](auto& d, auto& s) { pto::TADD(d, s, s); },
      [&](uint64_t x) { return expected(x, x, windlass::ReduceOp::kSum); });
  each(
      "TMAX", [](auto& d, auto& s) { pto::TMAX(d, s, s); },
      [&](uint64_t x) { return expected(x, x, windlass::ReduceOp::kMax); });
  each(
      "TMIN", [](auto& d, auto& s) { pto::TMIN(d, s, s); },
      [&](uint64_t x) { return expected(x, x, windlass::ReduceOp::kMin); });
  each(
      "TMUL", [](auto& d, auto& s) { pto::TMUL(d, s, s); },
      [&](uint64_t x) { return expected(x, x, windlass::ReduceOp::kProduct); });
  each(
      "TADDS", [&](auto& d, auto& s) { pto::TADDS(d, s, scalar); },
      [&](uint64_t x) { return expected(x, first, windlass::ReduceOp::kSum); });
  each(
      "TMULS", [&](auto& d, auto& s) { pto::TMULS(d, s, scalar); },
      [&](uint64_t x) { return expected(x, first, windlass::ReduceOp::kProduct); });
  each(
      "TEXPANDS", [&](auto& d, auto&) { pto::TEXPANDS(d, scalar); },
      [&](uint64_t) { return first; });
  each("TMOV", [](auto& d, auto& s) { pto::TMOV(d, s); }, [](uint64_t x) { return x; });
}

TEST(Arithmetic, SumsProductsAndExtremaAreThoseOfSim) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto folds = [](DType dtype) {
    return [dtype](uint64_t a, uint64_t b, windlass::ReduceOp op) {
      return reference::fold(dtype, {a, b}, op);
    };
  };
  expectOps<float>(kA2A3, random, folds(DType::kF32));
  expectOps<half>(kA2A3, random, folds(DType::kF16));
  expectOps<int32_t>(kA2A3, random, folds(DType::kI32));
  expectOps<int16_t>(kA2A3, random, folds(DType::kI16));
  expectOps<bfloat16_t>(kA5, random, folds(DType::kBF16));
  expectOps<uint16_t>(kA5, random, folds(DType::kU16));
}

TEST(Arithmetic, DifferencesAndQuotients) {
  std::vector<float> floats;
  for (int i = -20; i < 20; ++i) floats.push_back(static_cast<float>(i) / 3);
  std::vector<float> differences;
  std::vector<float> thirds;
  for (const float value : floats) {
    differences.push_back(value - (value + 0.3f));
    thirds.push_back(value / 3.0f);
  }
  EXPECT_EQ(through<float>(kA2A3, floats,
                           [](auto& d, auto& s) {
                             pto::TADDS(d, s, 0.3f);
                             pto::TSUB(d, s, d);
                           }),
            differences);
  const auto divide = [](auto& d, auto& s) { pto::TDIVS(d, s, 3.0f); };
  EXPECT_EQ(through<float>(kA2A3, floats, divide), thirds);
  const std::vector<int16_t> integers = {5, -32768, 32767};
  EXPECT_EQ(through<int16_t>(kA2A3, integers,
                             [](auto& d, auto& s) {
                               pto::TADDS(d, s, int16_t{-1});
                               pto::TSUB(d, d, s);
                             }),
            (std::vector<int16_t>{-1, -1, -1}));
}

}  // namespace arithmetic_test
}  // namespace windlass_test
