// SPDX-License-Identifier: Apache-2.0
// The macro-instructions as a kernel calls them, composed of the architecture's own. They stage in
// the kernel's tile, of which they use kRoomBytes, and leave no flag set: MTE2 has seen all that
// they did, on every pipe, when they end. What the target converts and folds is in its limits, and
// refused by them before a kernel runs.
#pragma once

#include <cstdint>

#include "native/isa/ascend/floats.h"
#include "native/isa/ascend/integers.h"
#include "native/isa/ascend/lists.h"
#include "native/isa/ascend/moves.h"

namespace windlass {

namespace ascend {

template <typename Dst>
WL_CORE inline void moveConvert(uint32_t room, const Dst& dst, const StridedView& src, DType wire) {
  const StridedView first = dst[0];
  const Walk walk = walkOf(first, [&](const auto& visit) {
    visit(src);
    for (uint32_t d = 0; d < dst.count; ++d) visit(dst[d]);
  });
  if (walk.isEmpty) return;
  if (wire == src.dtype && first.dtype == wire) return moveBits(room, walk, dst, src);
  if (!passesF32(src.dtype)) return refuse("TMOVE_CVT", src.dtype);
  if (!passesF32(wire)) return refuse("TMOVE_CVT", wire);
  if (!passesF32(first.dtype)) return refuse("TMOVE_CVT", first.dtype);
  inForm(walk, [&](auto form) {
    Floats<decltype(form), Dst> floats(room, walk, dst, wire);
    forEachBox<decltype(form)>(walk, [&](const Box& box) { floats.cast(box, src); });
    floats.end();
  });
}

template <typename Dst, typename Src>
WL_CORE inline void foldAll(uint32_t room, const Dst& dst, const Src& src, ReduceOp op, DType wire,
                            uint32_t terms) {
  const StridedView first = dst[0];
  const DType from = src[0].dtype;
  const Walk walk = walkOf(first, [&](const auto& visit) {
    for (uint32_t s = 0; s < src.count; ++s) visit(src[s]);
    for (uint32_t d = 0; d < dst.count; ++d) visit(dst[d]);
  });
  if (walk.isEmpty) return;
  if (passesF32(from)) {
    if (!passesF32(wire)) return refuse("TFOLD", wire);
    if (!passesF32(first.dtype)) return refuse("TFOLD", first.dtype);
    return inForm(walk, [&](auto form) {
      Floats<decltype(form), Dst> floats(room, walk, dst, wire);
      forEachBox<decltype(form)>(walk, [&](const Box& box) { floats.fold(box, src, op, terms); });
      floats.end();
    });
  }
  inForm(walk, [&](auto form) {
    using Form = decltype(form);
    switch (from) {
      case DType::kI32:
        return foldWords<int32_t, false, Form>(room, walk, dst, src, op);
      case DType::kU32:
        return foldWords<int32_t, true, Form>(room, walk, dst, src, op);
      case DType::kI16:
        return foldWords<int16_t, false, Form>(room, walk, dst, src, op);
      case DType::kU16:
        return foldWords<int16_t, true, Form>(room, walk, dst, src, op);
      case DType::kI8:
        return foldBytes<int8_t, Form>(room, walk, dst, src, op);
      case DType::kU8:
      case DType::kBool:
        return foldBytes<uint8_t, Form>(room, walk, dst, src, op);
      default:
        return refuse("TFOLD", from);
    }
  });
}

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
template <typename At, typename TileT>
WL_CORE inline void TMOVE_CVT(const ListedViews<At>& dst, const StridedView& src, DType wire,
                              TileT& tile, Stores = Stores::kByOperation) {
  ascend::moveConvert(ascend::roomOf(tile), dst, src, wire);
}
// dst += src, of one dtype, no element's sum lost to another add.
template <typename TileT>
WL_CORE inline void TMOVE_ADD(const StridedView& dst, const StridedView& src, TileT& tile) {
  const auto one = [&](uint32_t) { return dst; };
  const auto list = viewsAt(1, one);
  const ascend::Walk walk = ascend::walkOf(dst, [&](const auto& visit) {
    visit(src);
    visit(dst);
  });
  if (!walk.isEmpty) ascend::addAtomically(ascend::roomOf(tile), walk, list, src);
}
// Every dst = cast(cast(left fold of src in array order, to wire) to dst.dtype).
template <typename AtDst, typename AtSrc, typename TileT>
WL_CORE inline void TFOLD(const ListedViews<AtDst>& dst, const ListedViews<AtSrc>& src, ReduceOp op,
                          DType wire, TileT& tile, Stores = Stores::kByOperation) {
  ascend::foldAll(ascend::roomOf(tile), dst, src, op, wire, src.count);
}
// Every dst = the left fold of src in ascending number, of rows of `elements` elements of `dtype`.
// avg divides by `terms`.
template <typename AtDst, typename AtSrc, typename TileT>
WL_CORE inline void TFOLD(const ListedRows<AtDst>& dst, const ListedRows<AtSrc>& src,
                          int64_t elements, DType dtype, ReduceOp op, uint32_t terms, TileT& tile,
                          Stores = Stores::kByOperation) {
  const int64_t one = 1;
  const auto viewOf = [&](const void* row) {
    return StridedView{const_cast<void*>(row), dtype, 1, &elements, &one};
  };
  const auto target = [&](uint32_t d) { return viewOf(dst.at(d)); };
  const auto source = [&](uint32_t s) { return viewOf(src.at(s)); };
  ascend::foldAll(ascend::roomOf(tile), viewsAt(dst.count, target), viewsAt(src.count, source), op,
                  dtype, terms);
}

}  // namespace windlass
