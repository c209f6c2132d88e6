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

// True for the six float dtypes with any op, integers with any op except avg, bool with max and
// min.
constexpr bool canReduce(DType dtype, ReduceOp op) noexcept {
  if (dtype == DType::kBool) return isSelection(op);
  const bool onlyMoves = dtype == DType::kF8E8M0 || dtype == DType::kF8E4M3FNUZ ||
                         dtype == DType::kF8E5M2FNUZ || dtype == DType::kC64;
  return !onlyMoves && (op != ReduceOp::kAvg || isFloat(dtype));
}

// True for dtypes that every target adds atomically: f32 f16 bf16 i32 i16 i8.
constexpr bool canAccumulate(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kI32 || dtype == DType::kI16 || dtype == DType::kI8;
}

}  // namespace windlass
