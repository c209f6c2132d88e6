// SPDX-License-Identifier: Apache-2.0
// Names of dtypes, and the casts, reductions and atomic adds that the library supports. A target's
// Limits state which casts and reductions that target has.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// For example "f32"; "?" for an unknown number.
const char* dtypeName(int32_t dtype);
const char* reduceOpName(int32_t op);

inline const char* nameOf(DType dtype) {
  return dtypeName(static_cast<int32_t>(dtype));
}

WL_CORE constexpr bool isFloat(DType dtype) noexcept {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

// True for from == to, and between any two of f64 f32 f16 bf16 f8e4m3 f8e5m2.
constexpr bool canCast(DType from, DType to) noexcept {
  return from == to || (isFloat(from) && isFloat(to));
}

// True if the result equals one of the inputs.
constexpr bool isSelection(ReduceOp op) noexcept {
  return op == ReduceOp::kMax || op == ReduceOp::kMin;
}

// True for the six float dtypes with any op that is not bitwise, integers with any op except avg,
// bool with max and min. False for premultiplied sums, whose factors only collectives have.
constexpr bool canReduce(DType dtype, ReduceOp op) noexcept {
  if (dtype == DType::kBool) return isSelection(op);
  const bool onlyMoves = dtype == DType::kF8E8M0 || dtype == DType::kF8E4M3FNUZ ||
                         dtype == DType::kF8E5M2FNUZ || dtype == DType::kC64;
  if (onlyMoves || op == ReduceOp::kPremultipliedSum) return false;
  return isFloat(dtype) ? !isBitwise(op) : op != ReduceOp::kAvg;
}

// Bits of the identity of `op`, which is the result of a fold without terms. `dtype` is one that
// reductions accumulate in. The identity of max and min is the smallest and the largest value.
WL_CORE constexpr uint64_t identityBits(DType dtype, ReduceOp op) noexcept {
  const bool isWide = dtype == DType::kF64;
  const bool isSigned = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 ||
                        dtype == DType::kI64;
  const uint64_t top = uint64_t{1} << (8 * sizeOf(dtype) - 1);
  const uint64_t infinity = isWide ? 0x7ff0000000000000u : 0x7f800000u;
  switch (op) {
    case ReduceOp::kProduct:
      return !isFloat(dtype) ? 1 : isWide ? 0x3ff0000000000000u : 0x3f800000u;
    case ReduceOp::kMax:
      return isFloat(dtype) ? top | infinity : isSigned ? top : 0;
    case ReduceOp::kMin:
      if (isFloat(dtype)) return infinity;
      return dtype == DType::kBool ? 1 : isSigned ? top - 1 : top | (top - 1);
    case ReduceOp::kAnd:
      return top | (top - 1);
    default:
      return 0;
  }
}

// True for dtypes that every target adds atomically: f32 f16 bf16 i32 i16 i8.
constexpr bool canAccumulate(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kI32 || dtype == DType::kI16 || dtype == DType::kI8;
}

}  // namespace windlass
