// SPDX-License-Identifier: Apache-2.0
// The rules by which TCVT goes about a pair of dtypes, on every target.
#pragma once

#include "native/base/dtype.h"
#include "native/isa/enums.h"

namespace windlass {

// CAST_NONE is CAST_TRUNC from floats to integers, else CAST_RINT.
WL_CORE constexpr pto::RoundMode roundModeOf(DType from, DType to, pto::RoundMode mode) {
  if (mode != pto::RoundMode::CAST_NONE) return mode;
  return isFloat(from) && !isFloat(to) ? pto::RoundMode::CAST_TRUNC
                                                 : pto::RoundMode::CAST_RINT;
}
// Whether the pair has the mode: CAST_ODD is f32 to f16 alone.
WL_CORE constexpr bool hasRoundMode(DType from, DType to, pto::RoundMode mode) {
  return mode != pto::RoundMode::CAST_ODD || (from == DType::kF32 && to == DType::kF16);
}
// Whether a cast of the pair that doesn't saturate needs room beside its tiles, where such room is.
WL_CORE constexpr bool needsScratch(DType from, DType to) {
  return (from == DType::kF32 && to == DType::kI16) ||
         (from == DType::kF16 && (to == DType::kI16 || to == DType::kI8));
}
// Whether what the integer doesn't hold loses its upper bits, unless a saturation is given; else it
// is clamped.
WL_CORE constexpr bool castWraps(DType from, DType to) {
  return needsScratch(from, to) || (from == DType::kF16 && to == DType::kU8) ||
         (from == DType::kI64 && to == DType::kI32) || (from == DType::kI32 && to == DType::kI16);
}

}  // namespace windlass
