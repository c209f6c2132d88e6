// SPDX-License-Identifier: Apache-2.0
// Macro-instructions for kernels on sim. Each is one loop of native/isa/sim/loops.h. The tile is
// unused: it is a staging buffer on other targets.
#pragma once

#include <cstdint>

#include "native/isa/lists.h"
#include "native/isa/sim/loops.h"
#include "windlass/kernel.h"

namespace windlass {

// dst = cast(src).
template <typename TileT>
inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, TileT&) noexcept {
  TMOVE_CVT(dst, src);
}
// dst = cast(cast(src to wire) to dst.dtype), rounded at each step.
template <typename TileT>
inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire, TileT&,
                      Stores stores = Stores::kByOperation) noexcept {
  TMOVE_CVT(dst, src, wire, stores);
}
// Every dst = cast(cast(src to wire) to dst.dtype). `src` is read and cast once.
template <typename TileT>
inline void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, TileT&,
                      Stores stores = Stores::kByOperation) noexcept {
  TMOVE_CVT(dst, src, wire, stores);
}
// dst += src, atomically for each element. Both have the same dtype.
template <typename TileT>
inline void TMOVE_ADD(const StridedView& dst, const StridedView& src, TileT&) noexcept {
  detail::atomicAdd(dst, src);
}
// Every dst = cast(cast(left fold of src in array order, to wire) to dst.dtype).
template <typename TileT>
inline void TFOLD(const Views& dst, const Views& src, ReduceOp op, DType wire, TileT&,
                  Stores stores = Stores::kByOperation) noexcept {
  TFOLD(dst, src, op, wire, stores);
}

// Every dst = the left fold of src in ascending order. Rows have `elements` elements of `dtype`.
// avg divides by `terms`. Without sources, dst is the identity of `op`.
template <typename TileT>
inline void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype, ReduceOp op,
                  uint32_t terms, TileT&, Stores stores = Stores::kByOperation) noexcept {
  TFOLD(dst, src, elements, dtype, op, terms, stores);
}

// Every dst = the sum of weight(s) * src[s] in ascending order. Rows have `elements` elements of
// `dtype`. Without sources, dst is zero.
template <typename Weight, typename TileT>
inline void TFOLD_WEIGHTED(const Rows& dst, const Rows& src, const Weight& weight, int64_t elements,
                           DType dtype, TileT&, Stores stores = Stores::kByOperation) noexcept {
  TFOLD_WEIGHTED(dst, src, weightsAt(src.count, weight), elements, dtype, stores);
}
// Quantises the row at src by blocks: f8e4m3 elements to every dst, and f32 scales to every row of
// `scales`.
template <typename TileT>
inline void TQUANT(const Rows& dst, const Rows& scales, const void* src, int64_t elements,
                   DType dtype, TileT&, Stores stores = Stores::kByOperation) noexcept {
  TQUANT(dst, scales, src, elements, dtype, stores);
}

}  // namespace windlass
