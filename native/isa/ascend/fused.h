// SPDX-License-Identifier: Apache-2.0
// The macro-instructions as a kernel calls them, composed of the architecture's own. They stage in
// the kernel's tile, of which they use kRoomBytes, and leave no flag set: MTE2 has seen all that
// they did, on every pipe, when they end. What the target converts and folds is in its limits, and
// refused by them before a kernel runs.
#pragma once

#include <cstdint>

#include "native/isa/ascend/buffers.h"
#include "native/isa/lists.h"

namespace windlass {

namespace ascend {

// By the room that the tile has for them.
WL_CORE void moveConvert(uint32_t room, const Views& dst, const StridedView& src, DType wire);
WL_CORE void moveAdd(uint32_t room, const StridedView& dst, const StridedView& src);
WL_CORE void fold(uint32_t room, const Views& dst, const Views& src, ReduceOp op, DType wire,
                  uint32_t terms);
WL_CORE void foldWeighted(uint32_t room, const StridedView& dst, const Views& src,
                          const float* weights);

}  // namespace ascend

// dst = src, which have one dtype.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, TileT& tile) {
  const auto one = [&](uint32_t) { return dst; };
  ascend::moveConvert(ascend::roomOf(tile), viewsAt(1, one), src, src.dtype);
}
// dst = cast(cast(src to wire) to dst.dtype), rounded at each step.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire,
                              TileT& tile, Stores = Stores::kByOperation) {
  const auto one = [&](uint32_t) { return dst; };
  ascend::moveConvert(ascend::roomOf(tile), viewsAt(1, one), src, wire);
}
// Every dst = the same, where `src` is read and cast once.
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, TileT& tile,
                              Stores = Stores::kByOperation) {
  ascend::moveConvert(ascend::roomOf(tile), dst, src, wire);
}
// dst += src, of one dtype, no element's sum lost to another add.
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
// Every dst = the left fold of src in ascending number, of rows of `elements` elements of `dtype`.
// avg divides by `terms`.
template <typename TileT>
WL_CORE inline void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype,
                          ReduceOp op, uint32_t terms, TileT& tile,
                          Stores = Stores::kByOperation) {
  const int64_t one = 1;
  const auto viewOf = [&](const Rows& rows, uint32_t i) {
    StridedView view = {nullptr, dtype, 1, &elements, &one};
    rows.list(rows.context, i, 1, &view.data);
    return view;
  };
  const auto target = [&](uint32_t d) { return viewOf(dst, d); };
  const auto source = [&](uint32_t s) { return viewOf(src, s); };
  ascend::fold(ascend::roomOf(tile), viewsAt(dst.count, target), viewsAt(src.count, source), op,
               dtype, terms);
}

// dst = the sum of weights[s] * src[s] in ascending number, of rows of `elements` elements of
// `dtype`; of no src zeros.
template <typename TileT>
WL_CORE inline void TFOLD_WEIGHTED(void* dst, const Rows& src, const float* weights,
                                   int64_t elements, DType dtype, TileT& tile,
                                   Stores = Stores::kByOperation) {
  const int64_t one = 1;
  const auto source = [&](uint32_t s) {
    StridedView view = {nullptr, dtype, 1, &elements, &one};
    src.list(src.context, s, 1, &view.data);
    return view;
  };
  ascend::foldWeighted(ascend::roomOf(tile), {dst, dtype, 1, &elements, &one},
                       viewsAt(src.count, source), weights);
}
// Every dst = f8e4m3 of the row at src over the scale of each block, and every one of `scales`. A
// maximum along a row is not among the instructions that the architectures are known to have: the
// host refuses by kLimits.quantises what would come here.
template <typename TileT>
WL_CORE inline void TQUANT(const Rows&, const Rows&, const void*, int64_t, DType dtype, TileT&,
                           Stores = Stores::kByOperation) {
  ascend::refuse("TQUANT", dtype);
}

}  // namespace windlass
