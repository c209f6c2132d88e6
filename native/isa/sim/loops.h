// SPDX-License-Identifier: Apache-2.0
// Loops behind the macro-instructions on sim. They take views whose type and shape are known at run
// time. Host code of any target may call them. Each is one vector loop without staging tile,
// allocation or exception.
//
// Views: any strides (zero only on sources), any order of dimensions, up to kMaxDims. Destinations
// do not overlap sources, unless a destination equals a source (same address, strides and dtype).
//
// Numbers: a cast is one correctly rounded step (nearest even) and keeps subnormals. f16, bf16 and
// f8e5m2 overflow to infinity; f8e4m3 overflows to +-448, also from infinity. A cast NaN becomes
// the target's canonical (positive, quiet) NaN. A move between equal dtypes keeps every bit.
// Results are the same on every vector path, and do not depend on the caller's rounding, DAZ or FTZ
// mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/isa/limits.h"
#include "native/isa/lists.h"
#include "windlass/kernel.h"

namespace windlass {

// The loops of a vector path, and those of the path in use: native/isa/sim/vector_table.h.
struct VectorTable;
const VectorTable& activeTable() noexcept;

// dst = cast(src). Equal shapes; canCast(src.dtype, dst.dtype).
void TMOVE_CVT(const StridedView& dst, const StridedView& src) noexcept;
// dst = cast(cast(src to wire) to dst.dtype), rounded at each step.
void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire,
               Stores stores = Stores::kCached) noexcept;
// Every dst = cast(cast(src to wire) to dst.dtype). `src` is read and cast once. Equal shapes; the
// destinations share one dtype; ndst >= 1.
void TMOVE_CVT(const StridedView* dst, uint32_t ndst, const StridedView& src, DType wire,
               Stores stores = Stores::kCached) noexcept;
// Every dst = cast(left fold of src[0..nsrc) in array order). Equal shapes; the sources share one
// dtype; nsrc >= 1; canReduce(src->dtype, op) and canCast(src->dtype, each dst's dtype). The
// accumulator is f32 for f16, bf16 and f8, and otherwise has the sources' dtype. The result rounds
// once to the sources' dtype, then it is cast. avg divides in the accumulator. Integers wrap. For
// max and min, any NaN gives NaN, and -0 < +0. A NaN result is the canonical NaN, even if nsrc ==
// 1.
void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op) noexcept;
// Folds in the same way, with a cast to `wire` between the sources' dtype and each dst's dtype.
void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op, DType wire, Stores stores = Stores::kCached) noexcept;
// Overloads for lists of views.
void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, Stores stores) noexcept;
void TFOLD(const Views& dst, const Views& src, ReduceOp op, DType wire, Stores stores) noexcept;

// Folds any number of rows of `elements` elements of `dtype`: every dst = the left fold of src in
// ascending order. avg divides by `terms`: src.count, or more if src[0] is already a sum. Without
// sources, dst is the identity of `op`, which is not avg. A dst with the address of a src is not
// streamed.
void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype, ReduceOp op,
           uint32_t terms, Stores stores) noexcept;

// Every dst = the sum of weights[s] * src[s] in ascending order, for rows of `elements` floats of
// `dtype`. Computes in f32, or in f64 for f64. Rounds each weight, each product and each sum, and
// once to the dtype. Without sources, dst is zero. A dst may be a source.
void TFOLD_WEIGHTED(const Rows& dst, const Rows& src, const Weights& weights, int64_t elements,
                    DType dtype, Stores stores, const VectorTable& table = activeTable()) noexcept;

// Quantises a row of `elements` elements of f32, f16 or bf16 at src. A block has kQuantBlock
// elements and one scale s = max(the block's largest magnitude, 1e-4) / 448. Writes q = the element
// * (1 / s) as f8e4m3, to nearest even, to every dst. Writes the scales as f32 to every row of
// `scales`. NaNs stay NaNs and do not affect s.
void TQUANT(const Rows& dst, const Rows& scales, const void* src, int64_t elements, DType dtype,
            Stores stores, const VectorTable& table = activeTable()) noexcept;

// Contiguous copies of at least this size stream by default.
constexpr size_t kStreamingCopyBytes = kSimLimits.streamingBytes;

namespace detail {

// dst += src, atomically for each element. Equal shapes; canAccumulate(dst.dtype).
void atomicAdd(const StridedView& dst, const StridedView& src) noexcept;

void copyLong(void* dst, const void* src, size_t bytes) noexcept;
// Copies like copyLong, but with streaming stores if the operation of the current phase streams.
void putLong(void* dst, const void* src, size_t bytes) noexcept;

}  // namespace detail

// dst = src; the ranges do not overlap, or are equal.
inline void copyBytes(void* dst, const void* src, size_t bytes) noexcept {
  if (bytes > kShortCopyBytes) {
    detail::copyLong(dst, src, bytes);
  } else {
    copyShort(dst, src, bytes);
  }
}

// Name of the vector path in use: "avx512-fp16", "avx512-bf16", "avx512", "avx2" or "portable". It
// is the best path of this CPU, or a lower one that WINDLASS_ISA requests. The variable is read
// once.
const char* isaPathName() noexcept;
// Returns nullptr, or an error if WINDLASS_ISA is unknown or names a path that this CPU lacks. In
// that case the best path is in use, and code that starts the runtime must refuse to continue.
const char* isaPathError() noexcept;

}  // namespace windlass
