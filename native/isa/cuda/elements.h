// SPDX-License-Identifier: Apache-2.0
// Computation of one element on cores of GPUs, with the same bits as native/isa/sim/loops.h
// specifies: casts between floats, fold steps, weights, and blocks that share a scale. It is plain
// C++, and works on bits where processors may differ. Compile it without contraction and without
// flushing of subnormals.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/base/dtype.h"
#include "native/isa/cuda/memory.h"

namespace windlass::cuda {

template <class To, class From>
WL_CORE_INLINE To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

constexpr uint32_t kNanF32 = 0x7fc00000u;
constexpr uint64_t kNanF64 = 0x7ff8000000000000u;

WL_CORE_INLINE bool isNan(uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u;
}
WL_CORE_INLINE bool isNan(uint64_t bits) {
  return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}
// Unsigned integer with the bits of a float or a double.
template <typename V>
using BitsOf = std::conditional_t<sizeof(V) == 8, uint64_t, uint32_t>;
template <typename V>
constexpr BitsOf<V> kNanOf = static_cast<BitsOf<V>>(sizeof(V) == 8 ? kNanF64 : kNanF32);
template <typename V>
WL_CORE_INLINE V canonical(V value) {
  return isNan(bitCast<BitsOf<V>>(value)) ? bitCast<V>(kNanOf<V>) : value;
}

// A float with fewer bits than f32: `kMantissa` stored mantissa bits, exponent bias `kBias`.
// Overflow becomes kTop, which is infinity if the type has one. Codes above kTop are NaN; kNan is
// canonical.
template <typename RawT, int kBits, int kMantissa, int kBias, bool kHasInf, uint32_t kTop,
          uint32_t kNan>
struct Narrow {
  using Raw = RawT;
  static constexpr uint32_t kSign = 1u << (kBits - 1);
  static constexpr int kShift = 23 - kMantissa;
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  static constexpr uint32_t kMinNormal = static_cast<uint32_t>(128 - kBias) << 23;  // f32 bits
  // The f32 whose unit in the last place is this type's smallest subnormal.
  static constexpr uint32_t kMagic = static_cast<uint32_t>(127 + 1 - kBias - kMantissa + 23) << 23;
  static constexpr uint32_t kScale = static_cast<uint32_t>(127 + 127 - kBias) << 23;

  WL_CORE_INLINE static Raw narrow(float value) {
    const auto bits = bitCast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t even = (magnitude >> kShift) & 1u;
    const uint32_t rounded = magnitude + ((1u << (kShift - 1)) - 1u) + even;
    const uint32_t normal = (rounded - kRebias) >> kShift;
    // The sum rounds to a multiple of the smallest subnormal, ties to even.
    const float sum = bitCast<float>(magnitude) + bitCast<float>(kMagic);
    const uint32_t subnormal = bitCast<uint32_t>(sum) - kMagic;
    uint32_t code = magnitude < kMinNormal ? subnormal : normal;
    code = code > kTop ? kTop : code;
    code |= (bits >> (32 - kBits)) & kSign;
    return static_cast<Raw>(magnitude > 0x7f800000u ? kNan : code);
  }

  // Reads the code's bits as an f32 whose exponent is too low by 127 - kBias, then scales it. This
  // is exact for subnormals too.
  WL_CORE_INLINE static float widen(Raw code) {
    const uint32_t magnitude = code & (kSign - 1u);
    auto bits =
        bitCast<uint32_t>(bitCast<float>(magnitude << kShift) * bitCast<float>(kScale));
    if (kHasInf && magnitude == kTop) bits = 0x7f800000u;
    bits |= (code & kSign) << (32 - kBits);
    return bitCast<float>(magnitude > kTop ? kNanF32 : bits);
  }
};

struct BFloat16 {
  using Raw = uint16_t;
  WL_CORE_INLINE static Raw narrow(float value) {
    const auto bits = bitCast<uint32_t>(value);
    const uint32_t code = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<Raw>(isNan(bits) ? 0x7fc0u : code);
  }
  WL_CORE_INLINE static float widen(Raw code) {
    return canonical(bitCast<float>(static_cast<uint32_t>(code) << 16));
  }
};

// Rounds to odd: truncates toward zero and sets the last bit if inexact. A later rounding to at
// most 22 bits then rounds as from the f64. A NaN stays a NaN.
WL_CORE_INLINE float roundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const uint64_t back = bitCast<uint64_t>(static_cast<double>(nearest)) & 0x7fffffffffffffffu;
  const uint64_t exact = bitCast<uint64_t>(value) & 0x7fffffffffffffffu;
  const uint64_t difference = exact - back;
  const auto below = static_cast<uint32_t>(difference >> 63);  // rounded away from zero
  const uint32_t sticky = difference != 0 ? 1u : 0u;
  return bitCast<float>((bitCast<uint32_t>(nearest) - below) | sticky);
}

// Floats that folds accumulate in f32.
template <class N>
struct NarrowFloat {
  using Raw = typename N::Raw;
  using Value = float;
  static constexpr bool kIsFloat = true;
  WL_CORE_INLINE static Value load(Raw raw) { return N::widen(raw); }
  WL_CORE_INLINE static Raw store(Value value) { return N::narrow(value); }
};
template <typename V, typename RawT>
struct WideFloat {
  using Raw = RawT;
  using Value = V;
  static constexpr bool kIsFloat = true;
  WL_CORE_INLINE static Value load(Raw raw) { return bitCast<Value>(raw); }
  WL_CORE_INLINE static Raw store(Value value) { return bitCast<Raw>(canonical(value)); }
};
template <typename V, typename RawT>
struct Integer {
  using Raw = RawT;
  using Value = V;
  static constexpr bool kIsFloat = false;
  WL_CORE_INLINE static Value load(Raw raw) { return static_cast<Value>(raw); }
  WL_CORE_INLINE static Raw store(Value value) { return static_cast<Raw>(value); }
};

// Elements of a dtype: their type in memory (Raw), their type in computations (Value), and the
// conversions between them. A store rounds once and makes a NaN canonical.
template <DType>
struct Element;
// clang-format off
template <> struct Element<DType::kBool> : Integer<uint8_t, uint8_t> {};
template <> struct Element<DType::kU8> : Integer<uint8_t, uint8_t> {};
template <> struct Element<DType::kI8> : Integer<int8_t, uint8_t> {};
template <> struct Element<DType::kU16> : Integer<uint16_t, uint16_t> {};
template <> struct Element<DType::kI16> : Integer<int16_t, uint16_t> {};
template <> struct Element<DType::kU32> : Integer<uint32_t, uint32_t> {};
template <> struct Element<DType::kI32> : Integer<int32_t, uint32_t> {};
template <> struct Element<DType::kU64> : Integer<uint64_t, uint64_t> {};
template <> struct Element<DType::kI64> : Integer<int64_t, uint64_t> {};
template <> struct Element<DType::kF64> : WideFloat<double, uint64_t> {};
template <> struct Element<DType::kF32> : WideFloat<float, uint32_t> {};
template <> struct Element<DType::kF16>
    : NarrowFloat<Narrow<uint16_t, 16, 10, 15, true, 0x7c00, 0x7e00>> {};
template <> struct Element<DType::kBF16> : NarrowFloat<BFloat16> {};
template <> struct Element<DType::kF8E5M2>
    : NarrowFloat<Narrow<uint8_t, 8, 2, 15, true, 0x7c, 0x7e>> {};
template <> struct Element<DType::kF8E4M3>
    : NarrowFloat<Narrow<uint8_t, 8, 3, 7, false, 0x7e, 0x7f>> {};
// clang-format on

// Calls visit(Element<dtype>()) for a float dtype other than f64.
template <class Visit>
WL_CORE_INLINE auto withFloat(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF16:
      return visit(Element<DType::kF16>());
    case DType::kBF16:
      return visit(Element<DType::kBF16>());
    case DType::kF8E5M2:
      return visit(Element<DType::kF8E5M2>());
    case DType::kF8E4M3:
      return visit(Element<DType::kF8E4M3>());
    default:
      return visit(Element<DType::kF32>());
  }
}

// Widens an element to f32, exactly or, from f64 for a narrower type, rounded to odd.
WL_CORE_INLINE float throughF32(DType from, uint64_t bits) {
  if (from == DType::kF64) return roundToOdd(bitCast<double>(bits));
  return withFloat(from, [&](auto element) {
    using E = decltype(element);
    return E::load(static_cast<typename E::Raw>(bits));
  });
}

// Casts from one float dtype to another in one correctly rounded step. Equal dtypes keep every bit.
WL_CORE_INLINE uint64_t castBits(DType from, DType to, uint64_t bits) {
  if (from == to) return bits;
  if (from == DType::kF64 && to == DType::kF32)
    return Element<DType::kF32>::store(static_cast<float>(bitCast<double>(bits)));
  const float value = throughF32(from, bits);
  if (to == DType::kF64) return Element<DType::kF64>::store(value);
  return withFloat(to, [&](auto element) { return uint64_t{decltype(element)::store(value)}; });
}

// Combines two values. Integer sums and products wrap.
template <ReduceOp kOp, typename V>
WL_CORE_INLINE V combine(V a, V b) {
  constexpr bool kIsFloat = std::is_floating_point<V>::value;
  // Integers are computed in 64 bits.
  using Wide = std::conditional_t<kIsFloat, V, uint64_t>;
  if constexpr (kOp == ReduceOp::kSum) {
    return static_cast<V>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else if constexpr (kOp == ReduceOp::kProduct) {
    return static_cast<V>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else if constexpr (kOp == ReduceOp::kAnd) {
    return a & b;
  } else if constexpr (kOp == ReduceOp::kOr) {
    return a | b;
  } else if constexpr (kOp == ReduceOp::kXor) {
    return a ^ b;
  } else if constexpr (!kIsFloat) {
    return (kOp == ReduceOp::kMax ? a > b : a < b) ? a : b;
  } else {
    using Bits = BitsOf<V>;
    const auto x = bitCast<Bits>(a);
    const auto y = bitCast<Bits>(b);
    // Integer keys in the order of the values, with -0 below +0.
    const auto keyOf = [](Bits bits) {
      constexpr Bits kMagnitude = ~Bits{0} >> 1;
      const Bits sign = bits >> (8 * sizeof bits - 1);
      return static_cast<std::make_signed_t<Bits>>(bits ^ ((0 - sign) & kMagnitude));
    };
    const bool takeX = kOp == ReduceOp::kMax ? keyOf(x) > keyOf(y) : keyOf(x) < keyOf(y);
    return bitCast<V>(isNan(x) || isNan(y) ? kNanOf<V> : takeX ? x : y);
  }
}

// accumulator[i] = accumulator[i] op term(i) for every i. avg adds.
template <uint32_t kCount, typename V, class Term>
WL_CORE_INLINE void combineEach(ReduceOp op, V* accumulator, const Term& term) {
  const auto each = [&](auto constant) {
    WL_UNROLL
    for (uint32_t i = 0; i < kCount; ++i)
      accumulator[i] = combine<decltype(constant)::value>(accumulator[i], term(i));
  };
  if constexpr (!std::is_floating_point<V>::value) {
    if (op == ReduceOp::kAnd) return each(std::integral_constant<ReduceOp, ReduceOp::kAnd>());
    if (op == ReduceOp::kOr) return each(std::integral_constant<ReduceOp, ReduceOp::kOr>());
    if (op == ReduceOp::kXor) return each(std::integral_constant<ReduceOp, ReduceOp::kXor>());
  }
  switch (op) {
    case ReduceOp::kMax:
      return each(std::integral_constant<ReduceOp, ReduceOp::kMax>());
    case ReduceOp::kMin:
      return each(std::integral_constant<ReduceOp, ReduceOp::kMin>());
    case ReduceOp::kProduct:
      return each(std::integral_constant<ReduceOp, ReduceOp::kProduct>());
    default:
      return each(std::integral_constant<ReduceOp, ReduceOp::kSum>());
  }
}

// Returns sum / terms, for the fold of an average.
template <typename V>
WL_CORE_INLINE V divided(V sum, uint32_t terms) {
  return sum / static_cast<V>(terms);
}

// Returns the result of a fold without terms.
template <class E>
WL_CORE_INLINE typename E::Value identityOf(DType dtype, ReduceOp op) {
  using Value = typename E::Value;
  if constexpr (E::kIsFloat) {
    const DType accumulator = sizeof(Value) == 8 ? DType::kF64 : DType::kF32;
    return bitCast<Value>(static_cast<BitsOf<Value>>(identityBits(accumulator, op)));
  } else {
    return static_cast<Value>(identityBits(dtype, op));
  }
}

// Returns weight * term, plus the accumulator unless `first`. Each step is rounded.
template <typename V>
WL_CORE_INLINE V weighed(bool first, V accumulator, V weight, V term) {
  const V product = weight * term;
  return first ? product : accumulator + product;
}

// For a quantised block: bits of the least magnitude for its scale, and the magnitude that an
// element contributes. A NaN contributes 0.
constexpr uint32_t kLeastMagnitude = 0x38d1b717u;  // 1e-4
WL_CORE_INLINE uint32_t countedMagnitude(float value) {
  const uint32_t magnitude = bitCast<uint32_t>(value) & 0x7fffffffu;
  return isNan(magnitude) ? 0 : magnitude;
}
WL_CORE_INLINE float scaleOf(uint32_t largestMagnitude) {
  return bitCast<float>(largestMagnitude) / 448.0f;
}
WL_CORE_INLINE uint8_t quantised(float value, float reciprocal) {
  return Element<DType::kF8E4M3>::store(value * reciprocal);
}

}  // namespace windlass::cuda
