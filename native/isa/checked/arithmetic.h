// SPDX-License-Identifier: Apache-2.0
// Computation of the vector instructions, on tiles whose bytes are in `buffer`. Sums, products,
// maxima and minima match sim's TFOLD: integers wrap, and f16 and bf16 round once from f32.
#pragma once

#include "native/isa/checked/architecture.h"
#include "native/isa/checked/operands.h"
#include "native/isa/conversions.h"

namespace windlass::checked {

// dst = a op b; op is one of kAdd, kSub, kMul, kMax, kMin.
void combine(unsigned char* buffer, Op op, const TileRef& dst, const TileRef& a, const TileRef& b);
// dst = a op scalar; op is one of kAddScalar, kMulScalar, and for floats kDivScalar. `scalar` has
// the bytes of one element.
void combineScalar(unsigned char* buffer, Op op, const TileRef& dst, const TileRef& a,
                   uint64_t scalar);
void fill(unsigned char* buffer, const TileRef& dst, uint64_t scalar);
void move(unsigned char* buffer, const TileRef& dst, const TileRef& src);

// Rounding mode and saturation that TCVT uses for a pair of types.
struct Conversion {
  pto::RoundMode mode;  // never CAST_NONE
  bool saturates;
};
// On an architecture with a cast scratch buffer, a given saturation applies only to pairs that
// don't saturate by default.
Conversion conversionOf(const Architecture& architecture, DType from, DType to, pto::RoundMode mode,
                        const pto::SaturationMode* saturation);

// To an integer, NaN gives 0, and a value out of range is clamped or loses its upper bits. To a
// float, overflow gives the same result as in TMOVE_CVT.
void convert(unsigned char* buffer, const TileRef& dst, const TileRef& src,
             const Conversion& conversion);

}  // namespace windlass::checked
