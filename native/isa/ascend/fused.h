// SPDX-License-Identifier: Apache-2.0
// Macro-instructions for kernels, composed of the architecture's own instructions. They use
// kRoomBytes of the kernel's tile as staging buffers and leave no flag set. When one ends, MTE2 has
// waited for all of its work on every pipe. The target's limits list the dtypes that it converts
// and folds; the host checks them before a kernel runs.
#pragma once

#include <cstdint>

#include "native/isa/ascend/buffers.h"
#include "native/isa/lists.h"

namespace windlass {

namespace ascend {

// `room` is the offset of the kernel's tile.
WL_CORE void moveConvert(uint32_t room, const Views& dst, const StridedView& src, DType wire);
WL_CORE void moveAdd(uint32_t room, const StridedView& dst, const StridedView& src);
WL_CORE void fold(uint32_t room, const Views& dst, const Views& src, ReduceOp op, DType wire,
                  uint32_t terms);
WL_CORE void foldWeighted(uint32_t room, const Views& dst, const Views& src,
                          const Weights& weights);

// Calls run(dst, src) with rows of `elements` elements of `dtype` as views.
template <typename Run>
WL_CORE inline void onViews(const Rows& dst, const Rows& src, int64_t elements, DType dtype,
                            const Run& run) {
  const int64_t one = 1;
  const auto viewOf = [&](const Rows& rows, uint32_t i) {
    return StridedView{rows[i], dtype, 1, &elements, &one};
  };
  const auto target = [&](uint32_t d) { return viewOf(dst, d); };
  const auto source = [&](uint32_t s) { return viewOf(src, s); };
  run(viewsAt(dst.count, target), viewsAt(src.count, source));
}

}  // namespace ascend

// dst = cast(cast(src to wire) to dst.dtype), rounded at each step.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire,
                              TileT& tile, Stores = Stores::kByOperation) {
  const auto one = [&](uint32_t) { return dst; };
  ascend::moveConvert(ascend::roomOf(tile), viewsAt(1, one), src, wire);
}
// dst = src. Both have the same dtype.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, TileT& tile) {
  TMOVE_CVT(dst, src, src.dtype, tile);
}
// Every dst = cast(cast(src to wire) to dst.dtype). `src` is read and cast once.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, TileT& tile,
                              Stores = Stores::kByOperation) {
  ascend::moveConvert(ascend::roomOf(tile), dst, src, wire);
}
// dst += src, atomically for each element. Both have the same dtype.
template <typename TileT>
WL_CORE inline void TMOVE_ADD(const StridedView& dst, const StridedView& src, TileT& tile) {
  ascend::moveAdd(ascend::roomOf(tile), dst, src);
}
// Every dst = cast(cast(left fold of src in array order, to wire) to dst.dtype).
template <typename TileT>
WL_CORE inline void TFOLD(const Views& dst, const Views& src, ReduceOp op, DType wire, TileT& tile,
                          Stores = Stores::kByOperation) {
  ascend::fold(ascend::roomOf(tile), dst, src, op, wire, src.count);
}
// Every dst = the left fold of src in ascending order. Rows have `elements` elements of `dtype`.
// avg divides by `terms`. Without sources, dst is the identity of `op`.
template <typename TileT>
WL_CORE inline void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype,
                          ReduceOp op, uint32_t terms, TileT& tile,
                          Stores = Stores::kByOperation) {
  ascend::onViews(dst, src, elements, dtype, [&](const Views& to, const Views& from) {
    ascend::fold(ascend::roomOf(tile), to, from, op, dtype, terms);
  });
}

// Every dst = the sum of weight(s) * src[s] in ascending order. Rows have `elements` elements of
// `dtype`. Without sources, dst is zero.
template <typename Weight, typename TileT>
WL_CORE inline void TFOLD_WEIGHTED(const Rows& dst, const Rows& src, const Weight& weight,
                                   int64_t elements, DType dtype, TileT& tile,
                                   Stores = Stores::kByOperation) {
  ascend::onViews(dst, src, elements, dtype, [&](const Views& to, const Views& from) {
    ascend::foldWeighted(ascend::roomOf(tile), to, from, weightsAt(src.count, weight));
  });
}
// Not supported: neither architecture is known to have a maximum along a row. The host refuses such
// calls by kLimits.quantises.
template <typename TileT>
WL_CORE inline void TQUANT(const Rows&, const Rows&, const void*, int64_t, DType dtype, TileT&,
                           Stores = Stores::kByOperation) {
  ascend::refuse("TQUANT", dtype);
}

}  // namespace windlass
