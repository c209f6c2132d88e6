// SPDX-License-Identifier: Apache-2.0
// Kinds of tile instructions, and rules of TCVT for a pair of dtypes, for every target.
#pragma once

#include <cstdint>

#include "native/base/dtype.h"
#include "native/isa/enums.h"
#include "windlass/kernel.h"

namespace windlass {

// Resolves CAST_NONE: CAST_TRUNC from floats to integers, otherwise CAST_RINT.
WL_CORE constexpr pto::RoundMode roundModeOf(DType from, DType to, pto::RoundMode mode) {
  if (mode != pto::RoundMode::CAST_NONE) return mode;
  return isFloat(from) && !isFloat(to) ? pto::RoundMode::CAST_TRUNC
                                                 : pto::RoundMode::CAST_RINT;
}
// Returns true if the pair supports the mode. Only f32 to f16 supports CAST_ODD.
WL_CORE constexpr bool hasRoundMode(DType from, DType to, pto::RoundMode mode) {
  return mode != pto::RoundMode::CAST_ODD || (from == DType::kF32 && to == DType::kF16);
}
// Returns true if a non-saturating cast of the pair needs a scratch tile on architectures with a
// cast scratch buffer.
WL_CORE constexpr bool needsScratch(DType from, DType to) {
  return (from == DType::kF32 && to == DType::kI16) ||
         (from == DType::kF16 && (to == DType::kI16 || to == DType::kI8));
}
// Returns true if a value out of the integer's range loses its upper bits by default. Otherwise it
// is clamped.
WL_CORE constexpr bool castWraps(DType from, DType to) {
  return needsScratch(from, to) || (from == DType::kF16 && to == DType::kU8) ||
         (from == DType::kI64 && to == DType::kI32) || (from == DType::kI32 && to == DType::kI16);
}

// Layout of a float of at most 32 bits.
struct FloatPlaces {
  int mantissaBits;   // stored
  int leastExponent;  // of normal numbers
};
WL_CORE constexpr FloatPlaces placesOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {10, -14};
    case DType::kBF16:
      return {7, -126};
    case DType::kF8E4M3:
      return {3, -6};
    case DType::kF8E5M2:
      return {2, -14};
    default:
      return {23, -126};
  }
}
WL_CORE constexpr bool isUnsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32;
}

}  // namespace windlass

namespace windlass::checked {

// Instructions that accept only some element types.
enum class Op : uint8_t {
  kMove,  // TLOAD, TSTORE, TPUT, TGET, TMOV
  kAtomicAdd,
  kAdd,
  kSub,
  kMul,
  kMax,
  kMin,
  kAddScalar,
  kMulScalar,
  kDivScalar,
  kExpandScalar,
};
constexpr int kOps = 11;

// Returns the reduction that an instruction computes, a sum for kSub.
WL_CORE constexpr ReduceOp reduceOpOf(Op op) {
  switch (op) {
    case Op::kMul:
    case Op::kMulScalar:
      return ReduceOp::kProduct;
    case Op::kMax:
      return ReduceOp::kMax;
    case Op::kMin:
      return ReduceOp::kMin;
    default:
      return ReduceOp::kSum;
  }
}

}  // namespace windlass::checked
