// SPDX-License-Identifier: Apache-2.0
// A worker's part of the tile instructions other than moves and folds. Each element has the same
// bits as in native/isa/sim/vector.h, except for the bits of a NaN quotient. View 0 of a job is
// written; views 1 and 2 are read.
#pragma once

#include <cstdint>

#include "native/isa/conversions.h"
#include "native/isa/cuda/elements.h"
#include "native/isa/cuda/job.h"

namespace windlass::cuda {

// Address of element n of a view's row.
WL_CORE_INLINE unsigned char* elementAt(const Job& job, uint32_t view, uint64_t row, uint64_t n) {
  return job.at(view, row) + static_cast<int64_t>(n) * job.innerStep(view);
}
// Writes body(row, n) to every element. Raw is the target's type in memory.
template <typename Raw, class Body>
WL_CORE_INLINE void writeEach(const Job& job, uint32_t thread, const Body& body) {
  shareEdges(job, thread, [&](uint64_t row, uint64_t n) {
    storeAnywhere<Raw>(elementAt(job, 0, row, n), body(row, n));
  });
}
template <class E>
WL_CORE_INLINE typename E::Raw rawAt(const Job& job, uint32_t view, uint64_t row, uint64_t n) {
  return loadAnywhere<typename E::Raw>(elementAt(job, view, row, n));
}

template <class E>
WL_CORE_INLINE typename E::Raw negated(typename E::Raw raw) {
  using Raw = typename E::Raw;
  if constexpr (E::kIsFloat) {
    return static_cast<Raw>(raw ^ Raw{1} << (8 * sizeof(Raw) - 1));
  } else {
    return static_cast<Raw>(0 - raw);
  }
}

template <class E>
WL_CORE void subtractTiles(const Job& job, uint32_t thread) {
  writeEach<typename E::Raw>(job, thread, [&](uint64_t row, uint64_t n) {
    return E::store(combine<ReduceOp::kSum>(E::load(rawAt<E>(job, 1, row, n)),
                                            E::load(negated<E>(rawAt<E>(job, 2, row, n)))));
  });
}
template <class E, ReduceOp kOp>
WL_CORE void combineScalar(const Job& job, uint32_t thread) {
  const auto scalar = E::load(static_cast<typename E::Raw>(job.scalar));
  writeEach<typename E::Raw>(job, thread, [&](uint64_t row, uint64_t n) {
    return E::store(combine<kOp>(E::load(rawAt<E>(job, 1, row, n)), scalar));
  });
}
// Divides in f32.
template <class E>
WL_CORE void divideByScalar(const Job& job, uint32_t thread) {
  using Value = typename E::Value;
  const auto divisor = static_cast<float>(E::load(static_cast<typename E::Raw>(job.scalar)));
  writeEach<typename E::Raw>(job, thread, [&](uint64_t row, uint64_t n) {
    const float quotient = static_cast<float>(E::load(rawAt<E>(job, 1, row, n))) / divisor;
    return E::store(static_cast<Value>(quotient));
  });
}
template <class E>
WL_CORE void fillTile(const Job& job, uint32_t thread) {
  writeEach<typename E::Raw>(job, thread, [&](uint64_t, uint64_t) {
    return static_cast<typename E::Raw>(job.scalar);
  });
}

// An exact number other than 0: mantissa * 2^exponent.
struct Exact {
  uint64_t mantissa;
  int exponent;
  bool isNegative;

  // Exponent of the leading bit.
  WL_CORE_INLINE int magnitude() const {
    int bit = 63;
    while ((mantissa >> bit) == 0) --bit;
    return exponent + bit;
  }
  // Rounds to a multiple of 2^place by the mode.
  WL_CORE_INLINE Exact rounded(int place, pto::RoundMode mode) const {
    const int cut = place - exponent;
    if (cut <= 0) return *this;
    const uint64_t kept = cut > 63 ? 0 : mantissa >> cut;
    const uint64_t rest = cut > 63 ? mantissa : mantissa & ((uint64_t{1} << cut) - 1);
    const uint64_t half = cut > 64 ? 0 : uint64_t{1} << (cut - 1);
    const bool isTie = cut <= 64 && rest == half;
    const bool isMore = cut <= 64 && rest > half;
    const bool isOdd = (kept & 1) != 0;
    bool up = false;
    if (mode == pto::RoundMode::CAST_RINT) up = isMore || (isTie && isOdd);
    if (mode == pto::RoundMode::CAST_ROUND) up = isMore || isTie;
    if (mode == pto::RoundMode::CAST_FLOOR) up = isNegative && rest != 0;
    if (mode == pto::RoundMode::CAST_CEIL) up = !isNegative && rest != 0;
    if (mode == pto::RoundMode::CAST_ODD) up = rest != 0 && !isOdd;
    return {kept + (up ? 1 : 0), place, isNegative};
  }
};

WL_CORE_INLINE Exact exactOf(double value) {
  const auto bits = bitCast<uint64_t>(value);
  const uint64_t fraction = bits & 0xfffffffffffffu;
  const auto biased = static_cast<int>(bits >> 52 & 0x7ff);
  if (biased == 0) return {fraction, -1074, bits >> 63 != 0};
  return {fraction | uint64_t{1} << 52, biased - 1075, bits >> 63 != 0};
}
// Converts a number of at most 53 bits that is not below the least normal f64.
WL_CORE_INLINE double doubleOf(const Exact& exact) {
  uint64_t bits = 0;
  if (exact.mantissa != 0) {
    const int magnitude = exact.magnitude();
    const int shift = 52 - (magnitude - exact.exponent);
    const uint64_t whole = shift >= 0 ? exact.mantissa << shift : exact.mantissa >> -shift;
    bits = magnitude > 1023 ? uint64_t{0x7ff} << 52
                            : static_cast<uint64_t>(magnitude + 1023) << 52 |
                                  (whole & 0xfffffffffffffu);
  }
  return bitCast<double>(bits | (exact.isNegative ? uint64_t{1} << 63 : 0));
}

// Bits of an element of an integer dtype. A value out of range is clamped or loses its upper bits.
WL_CORE_INLINE uint64_t integerOf(const Exact& whole, DType to, bool saturates) {
  const auto bits = static_cast<uint32_t>(8 * sizeOf(to));
  uint64_t most = uint64_t{1} << 63;  // largest magnitude of negative values
  uint64_t mostPositive = most - 1;
  if (saturates) {
    most = isUnsigned(to) ? 0 : uint64_t{1} << (bits - 1);
    mostPositive = isUnsigned(to) ? (uint64_t{1} << bits) - 1 : most - 1;
  }
  const uint64_t limit = whole.isNegative ? most : mostPositive;
  uint64_t value = 0;
  if (whole.mantissa != 0) {
    const bool isHuge = whole.magnitude() > 63;
    value = isHuge ? limit : whole.mantissa << whole.exponent;
    value = value > limit ? limit : value;
  }
  return whole.isNegative ? 0 - value : value;
}

// Converts one element for TCVT where TMOVE_CVT has no such cast. The mode is not CAST_NONE.
template <DType kFrom, DType kTo>
WL_CORE_INLINE typename Element<kTo>::Raw converted(typename Element<kFrom>::Raw raw,
                                                    pto::RoundMode mode, bool saturates) {
  using To = Element<kTo>;
  Exact exact = {};
  if constexpr (Element<kFrom>::kIsFloat) {
    const auto value = static_cast<double>(Element<kFrom>::load(raw));
    const uint64_t bits = bitCast<uint64_t>(value);
    const bool isFinite = (bits >> 52 & 0x7ff) != 0x7ff;
    if constexpr (To::kIsFloat) {
      if (!isFinite || value == 0)
        return static_cast<typename To::Raw>(castBits(DType::kF64, kTo, bits));
    } else if (!isFinite) {
      if (isNan(bits)) return 0;
      exact = {uint64_t{1} << 63, 1, value < 0};  // out of range of any integer
      return static_cast<typename To::Raw>(integerOf(exact, kTo, saturates));
    } else if (value == 0) {
      return 0;
    }
    exact = exactOf(value);
  } else {
    static_assert(kFrom != DType::kU64 && kFrom != DType::kBool, "no cast of those");
    const auto value = static_cast<int64_t>(Element<kFrom>::load(raw));
    if (value == 0) return 0;
    const auto bits = static_cast<uint64_t>(value);
    exact = {value < 0 ? 0 - bits : bits, 0, value < 0};
  }
  if constexpr (To::kIsFloat) {
    const FloatPlaces places = placesOf(kTo);
    const int magnitude = exact.magnitude();
    const int exponent = magnitude > places.leastExponent ? magnitude : places.leastExponent;
    const Exact result = exact.rounded(exponent - places.mantissaBits, mode);
    return static_cast<typename To::Raw>(
        castBits(DType::kF64, kTo, bitCast<uint64_t>(doubleOf(result))));
  } else {
    return static_cast<typename To::Raw>(integerOf(exact.rounded(0, mode), kTo, saturates));
  }
}
template <DType kFrom, DType kTo>
WL_CORE void convertTile(const Job& job, uint32_t thread) {
  writeEach<typename Element<kTo>::Raw>(job, thread, [&](uint64_t row, uint64_t n) {
    return converted<kFrom, kTo>(rawAt<Element<kFrom>>(job, 1, row, n), job.mode, job.saturates);
  });
}

}  // namespace windlass::cuda
