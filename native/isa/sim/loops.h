// SPDX-License-Identifier: Apache-2.0
// The loops behind the fused macro-instructions on sim, on views whose type and shape are known at
// run time, which host code of any target may call too. Each is one vector loop: no staging tile,
// no allocation, no exception.
//
// Views: any strides (zero on sources only), any order of dimensions, up to kMaxDims. Destinations
// do not overlap sources, unless a destination is exactly one of the sources (same address, strides
// and dtype).
//
// Numbers: a cast is one correctly rounded step (nearest even) that keeps subnormals; f16, bf16 and
// f8e5m2 overflow to infinity, f8e4m3 and its infinite inputs to +-448; a cast NaN is the target's
// canonical (positive, quiet) NaN. A move between equal dtypes keeps every bit. Results are the
// same on every vector path and do not depend on the caller's rounding, DAZ or FTZ mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/isa/limits.h"
#include "native/isa/lists.h"
#include "windlass/kernel.h"

namespace windlass {

// dst = cast(src). Equal shapes; canCast(src.dtype, dst.dtype).
void TMOVE_CVT(const StridedView& dst, const StridedView& src) noexcept;
// dst = cast(cast(src to wire) to dst.dtype), rounded at each step.
void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire,
               Stores stores = Stores::kCached) noexcept;
// Every dst = the same, where `src` is read and cast once. Equal shapes; the destinations share one
// dtype; ndst >= 1.
void TMOVE_CVT(const StridedView* dst, uint32_t ndst, const StridedView& src, DType wire,
               Stores stores = Stores::kCached) noexcept;
// Every dst = cast(left fold of src[0..nsrc) in array order). Equal shapes; the sources share one
// dtype; nsrc >= 1; canReduce(src->dtype, op) and canCast(src->dtype, each dst's dtype).
// Accumulates in f32 for f16, bf16 and f8, else in the dtype; rounds once to the sources' dtype,
// then casts. avg divides in the accumulator. Integers wrap. max and min: any NaN gives NaN,
// -0 < +0. A NaN result is the canonical NaN, whatever its sources' bits, nsrc == 1 included.
void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op) noexcept;
// The same with a cast to `wire` between the sources' dtype and each dst's dtype.
void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op, DType wire, Stores stores = Stores::kCached) noexcept;
// The same of lists of views.
void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, Stores stores) noexcept;
void TFOLD(const Views& dst, const Views& src, ReduceOp op, DType wire, Stores stores) noexcept;

// The same of rows of `elements` elements of `dtype`, however many: every dst = the left fold of
// src in ascending number. avg divides by `terms`: src.count, or more where src[0] is a sum. A dst
// that is one of the src, by its address, is not streamed.
void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype, ReduceOp op,
           uint32_t terms, Stores stores) noexcept;

// dst = the sum of weights[s] * src[s] in ascending number, of rows of `elements` elements of
// `dtype`, a float: in f32, or f64 of f64, each product and each sum rounded, and once to the
// dtype. No src: zeros. dst overlaps none of them.
void TFOLD_WEIGHTED(void* dst, const Rows& src, const float* weights, int64_t elements, DType dtype,
                    Stores stores) noexcept;

// Every dst = f8e4m3 of the row of `elements` elements of `dtype` at src, and every one of
// `scales`, as many rows of f32, one for each kQuantBlock elements: s = max(the block's largest
// magnitude, 1e-4) / 448, q = the element * (1 / s), to nearest even. NaNs stay, and have no part
// in s. f32, f16 and bf16.
void TQUANT(const Rows& dst, const Rows& scales, const void* src, int64_t elements, DType dtype,
            Stores stores) noexcept;

// Contiguous copies of at least this size stream of themselves.
constexpr size_t kStreamingCopyBytes = kSimLimits.streamingBytes;

namespace detail {

// dst += src, no element's sum lost to another add. Equal shapes; canAccumulate(dst.dtype).
void atomicAdd(const StridedView& dst, const StridedView& src) noexcept;

void copyLong(void* dst, const void* src, size_t bytes) noexcept;
// The same, past the caches where the operation in whose phase it stands says so.
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

// The vector path in use: "avx512-fp16", "avx512-bf16", "avx512", "avx2" or "portable". The best
// that the CPU has, or the lower one that WINDLASS_ISA (portable, avx2, avx512) asks for; read
// once.
const char* isaPathName() noexcept;
// nullptr, or why WINDLASS_ISA is not obeyed: its value is unknown, or this CPU lacks that path.
// The best path is in use then; whoever starts the runtime refuses to go on.
const char* isaPathError() noexcept;

}  // namespace windlass
