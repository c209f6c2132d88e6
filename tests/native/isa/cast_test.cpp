// SPDX-License-Identifier: Apache-2.0
// Every cast on every vector path against integer arithmetic, bit for bit.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/native/isa/reference.h"

namespace windlass {
namespace cast_test {

using reference::Format;
using reference::kFormats;

constexpr size_t kBlock = 4096;

// One input in so many, coprime to every field of the format.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
const uint64_t kStep = 4099;
#else
const uint64_t kStep = std::getenv("WINDLASS_TEST_LONG") != nullptr ? 257 : 1031;
#endif

// Collects source codes and checks them, a block at a time, on all paths.
class CastCheck {
 public:
  CastCheck(const Format& from, const Format& to)
      : from_(from), to_(to), paths_(reference::availablePaths()) {
    source_.reserve(kBlock);
  }
  ~CastCheck() { flush(); }

  void add(uint64_t code) {
    source_.push_back(code);
    if (source_.size() == kBlock) flush();
  }

  void flush() {
    const size_t count = source_.size();
    const size_t fromBytes = sizeOf(from_.dtype);
    const size_t toBytes = sizeOf(to_.dtype);
    std::vector<unsigned char> packed(count * fromBytes + 1);
    std::vector<uint64_t> expected(count);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&packed[i * fromBytes], &source_[i], fromBytes);
      expected[i] = reference::cast(from_.dtype, to_.dtype, source_[i]);
    }
    for (const auto& [path, table] : paths_) {
      std::vector<unsigned char> out(count * toBytes + 1);
      const auto n = static_cast<int64_t>(count);
      const StridedView dst = reference::flat(out.data(), to_.dtype, &n);
      detail::moveConvert(*table, &dst, 1, reference::flat(packed.data(), from_.dtype, &n),
                          nullptr);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t got = reference::loadElement(&out[i * toBytes], toBytes);
        if (got == expected[i]) continue;
        if (++failures_ <= 5) {
          ADD_FAILURE() << from_.name << " 0x" << std::hex << source_[i] << " to " << to_.name
                        << " on " << nameOf(path) << ": 0x" << got << ", expected 0x"
                        << expected[i];
        }
      }
    }
    checked_ += count;
    source_.clear();
  }

  uint64_t checked() const { return checked_; }

 private:
  const Format& from_;
  const Format& to_;
  std::vector<reference::NamedPath> paths_;
  std::vector<uint64_t> source_;
  uint64_t checked_ = 0;
  int failures_ = 0;
};

// Codes of `from` at, halfway between, and beside all of `to`'s values (16 bits at most).
void addBoundaries(const Format& from, const Format& to, CastCheck& check) {
  const uint64_t sign = uint64_t{1} << (from.bits - 1);
  const uint64_t codes = uint64_t{1} << (to.bits - 1);
  uint64_t below = 0;
  for (uint64_t code = 0; code < codes; ++code) {
    const uint64_t at = reference::cast(to.dtype, from.dtype, code);
    const uint64_t centres[] = {at, below + (at - below) / 2, at + (at - below) / 2};
    below = at;
    for (const uint64_t centre : centres) {
      for (uint64_t near = centre - 2; near != centre + 3; ++near) {
        check.add(near & (sign - 1));
        check.add((near & (sign - 1)) | sign);
      }
    }
  }
  for (uint64_t k = 0; k < 64; ++k) {
    for (const uint64_t centre : {uint64_t{0}, from.maxFinite, from.overflow, from.nan, sign - 1,
                                  uint64_t{1} << from.mantissa}) {
      const uint64_t near = (centre + k - 32) & (sign - 1);
      check.add(near);
      check.add(near | sign);
    }
  }
}

class CastFromF32 : public testing::TestWithParam<Format> {};

TEST_P(CastFromF32, MatchesIntegerReferenceOverTheWholeRange) {
  const Format& from = kFormats[1];
  const bool exhaustive = std::getenv("WINDLASS_EXHAUSTIVE") != nullptr;
  const uint64_t step = exhaustive ? 1 : kStep;
  CastCheck check(from, GetParam());
  for (uint64_t code = 0; code <= 0xffffffffu; code += step) check.add(code);
  addBoundaries(from, GetParam(), check);
  check.flush();
  RecordProperty("inputs", std::to_string(check.checked()));
}

INSTANTIATE_TEST_SUITE_P(Targets, CastFromF32,
                         testing::Values(kFormats[2], kFormats[3], kFormats[4], kFormats[5]),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Cast, EveryNarrowCodeToEveryType) {
  for (const Format& from : kFormats) {
    if (from.bits > 16) continue;
    for (const Format& to : kFormats) {
      CastCheck check(from, to);
      for (uint64_t code = 0; code < uint64_t{1} << from.bits; ++code) check.add(code);
    }
  }
}

TEST(Cast, F64BoundariesOfEveryNarrowType) {
  for (const Format& to : kFormats) {
    if (to.bits > 16) continue;
    CastCheck check(kFormats[0], to);
    addBoundaries(kFormats[0], to, check);
  }
}

// A tie in the narrow type, moved by less than half a place of f32: rounding through f32 would lose
// the direction.
TEST(Cast, F64TrapsForDoubleRounding) {
  for (const Format& to : kFormats) {
    if (to.bits > 16) continue;
    CastCheck check(kFormats[0], to);
    const uint64_t codes = to.maxFinite;
    for (uint64_t code = 0; code < codes; ++code) {
      const uint64_t low = reference::cast(to.dtype, DType::kF64, code);
      const uint64_t high = reference::cast(to.dtype, DType::kF64, code + 1);
      const double middle =
          (reference::fromBits<double>(low) + reference::fromBits<double>(high)) / 2;
      const uint64_t tie = reference::toBits(middle);
      for (const uint64_t offset : {uint64_t{1}, uint64_t{1} << 10, uint64_t{1} << 27,
                                    uint64_t{1} << 28, (uint64_t{1} << 28) + 1}) {
        check.add(tie - offset);
        check.add(tie + offset);
        check.add((tie + offset) | uint64_t{1} << 63);
      }
      check.add(tie);
    }
  }
}

TEST(Cast, RandomF64AndF32ToEveryType) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int count = reference::few() ? 30'000 : 300'000;
  for (const Format& from : {kFormats[0], kFormats[1]}) {
    for (const Format& to : kFormats) {
      CastCheck check(from, to);
      for (int i = 0; i < count; ++i) {
        check.add(reference::randomElement(from.dtype, random));
        if (from.bits < 64) continue;
        // Exponents that the narrower types have.
        const uint64_t exponent = 1023 - 160 + random() % 320;
        check.add((random() & 0x800fffffffffffff) | exponent << 52);
        // Close to f32's ties.
        const uint64_t tie = (random() & 0x800fffffe0000000) + (1u << 28);
        check.add((tie | exponent << 52) + random() % 3 - 1);
      }
    }
  }
}

TEST(Cast, IdentityKeepsNanPayloads) {
  for (const Format& format : kFormats) {
    CastCheck check(format, format);
    const uint64_t sign = uint64_t{1} << (format.bits - 1);
    for (uint64_t code = format.maxFinite; code < format.maxFinite + 3000 && code < sign; ++code) {
      check.add(code);
      check.add(code | sign);
    }
  }
}

// Loops work on blocks of lanes: every length and misalignment gives the same elements, and
// nothing beyond them is written.
TEST(Cast, EveryShortLengthAndAlignment) {
  std::mt19937_64 random(7);
  for (const Format& from : kFormats) {
    for (const Format& to : kFormats) {
      const size_t fromBytes = sizeOf(from.dtype);
      const size_t toBytes = sizeOf(to.dtype);
      for (size_t count = 0; count < 70; ++count) {
        const size_t skew = count % 3;
        std::vector<unsigned char> source(skew + count * fromBytes);
        for (size_t i = 0; i < count; ++i) {
          const uint64_t code = reference::randomElement(from.dtype, random);
          std::memcpy(&source[skew + i * fromBytes], &code, fromBytes);
        }
        for (const auto& [path, table] : reference::availablePaths()) {
          std::vector<unsigned char> out(skew + count * toBytes + 8, 0xa5);
          const auto n = static_cast<int64_t>(count);
          const StridedView dst = reference::flat(out.data() + skew, to.dtype, &n);
          const StridedView src = reference::flat(source.data() + skew, from.dtype, &n);
          detail::moveConvert(*table, &dst, 1, src, nullptr);
          for (size_t i = 0; i < count; ++i) {
            const uint64_t code = reference::loadElement(&source[skew + i * fromBytes], fromBytes);
            ASSERT_EQ(reference::loadElement(&out[skew + i * toBytes], toBytes),
                      reference::cast(from.dtype, to.dtype, code))
                << from.name << " to " << to.name << " on " << nameOf(path) << ", element " << i
                << " of " << count;
          }
          for (size_t i = 0; i < skew; ++i) ASSERT_EQ(out[i], 0xa5);
          for (size_t i = skew + count * toBytes; i < out.size(); ++i) ASSERT_EQ(out[i], 0xa5);
        }
      }
    }
  }
}

TEST(Cast, WireRoundsTwice) {
  std::mt19937_64 random(11);
  const int64_t count = 3000;
  for (const Format& from : kFormats) {
    for (const Format& wire : kFormats) {
      for (const Format& to : kFormats) {
        const size_t fromBytes = sizeOf(from.dtype);
        const size_t toBytes = sizeOf(to.dtype);
        std::vector<unsigned char> source(static_cast<size_t>(count) * fromBytes);
        std::vector<unsigned char> out(static_cast<size_t>(count) * toBytes);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          const uint64_t code = reference::randomElement(from.dtype, random);
          std::memcpy(&source[i * fromBytes], &code, fromBytes);
        }
        TMOVE_CVT(reference::flat(out.data(), to.dtype, &count),
                  reference::flat(source.data(), from.dtype, &count), wire.dtype);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          const uint64_t code = reference::loadElement(&source[i * fromBytes], fromBytes);
          const uint64_t middle = reference::cast(from.dtype, wire.dtype, code);
          ASSERT_EQ(reference::loadElement(&out[i * toBytes], toBytes),
                    reference::cast(wire.dtype, to.dtype, middle))
              << from.name << " to " << wire.name << " to " << to.name << ", 0x" << std::hex
              << code;
        }
      }
    }
  }
}

TEST(Cast, OnlyFloatsCastAndAllMove) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (int k = 0; k < kDTypeCount; ++k) {
      const auto from = static_cast<DType>(i);
      const auto to = static_cast<DType>(k);
      const bool floats =
          reference::formatOf(from) != nullptr && reference::formatOf(to) != nullptr;
      EXPECT_EQ(canCast(from, to), i == k || floats) << i << " to " << k;
    }
  }
}

}  // namespace cast_test
}  // namespace windlass
