// SPDX-License-Identifier: Apache-2.0
#include "native/isa/ascend/fused.h"

#include "native/isa/ascend/floats.h"
#include "native/isa/ascend/integers.h"
#include "native/isa/ascend/moves.h"

namespace windlass::ascend {

WL_CORE void moveConvert(uint32_t room, const Views& targets, const StridedView& src, DType wire) {
  const ViewList dst(targets);
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
    Floats<decltype(form)> floats(room, walk, dst, wire);
    forEachBox<decltype(form)>(walk, [&](const Box& box) { floats.cast(box, src); });
    floats.end();
  });
}

WL_CORE void moveAdd(uint32_t room, const StridedView& dst, const StridedView& src) {
  const auto one = [&](uint32_t) { return dst; };
  const Walk walk = walkOf(dst, [&](const auto& visit) {
    visit(src);
    visit(dst);
  });
  const Views list = viewsAt(1, one);
  if (!walk.isEmpty) addAtomically(room, walk, ViewList(list), src);
}

WL_CORE void fold(uint32_t room, const Views& targets, const Views& sources, ReduceOp op,
                  DType wire, uint32_t terms) {
  const ViewList dst(targets);
  const ViewList src(sources);
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
      Floats<decltype(form)> floats(room, walk, dst, wire);
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

WL_CORE void foldWeighted(uint32_t room, const StridedView& target, const Views& sources,
                          const float* weights) {
  const auto one = [&](uint32_t) { return target; };
  const Views list = viewsAt(1, one);
  const ViewList dst(list);
  const ViewList src(sources);
  const Walk walk = walkOf(target, [&](const auto& visit) {
    for (uint32_t s = 0; s < src.count; ++s) visit(src[s]);
    visit(target);
  });
  if (walk.isEmpty) return;
  if (!passesF32(target.dtype)) return refuse("TFOLD_WEIGHTED", target.dtype);
  inForm(walk, [&](auto form) {
    Floats<decltype(form)> floats(room, walk, dst, target.dtype);
    forEachBox<decltype(form)>(walk,
                               [&](const Box& box) { floats.foldWeighted(box, src, weights); });
    floats.end();
  });
}

}  // namespace windlass::ascend
