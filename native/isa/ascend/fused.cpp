// SPDX-License-Identifier: Apache-2.0
#include "native/isa/ascend/fused.h"

#include "native/isa/ascend/floats.h"
#include "native/isa/ascend/integers.h"
#include "native/isa/ascend/moves.h"

namespace windlass::ascend {

// Calls run(floats, box) for the boxes of a walk.
template <typename Run>
WL_CORE inline void onFloats(uint32_t room, const Walk& walk, const Views& dst, DType wire,
                             const Run& run) {
  inForm(walk, [&](auto form) {
    Floats<decltype(form)> floats(room, walk, dst, wire);
    forEachBox<decltype(form)>(walk, [&](const Box& box) { run(floats, box); });
    floats.end();
  });
}

WL_CORE void moveConvert(uint32_t room, const Views& dst, const StridedView& src, DType wire) {
  const auto source = [&](uint32_t) { return src; };
  const Views sources = viewsAt(1, source);
  const Walk walk = walkOf(dst, sources);
  const DType to = dst[0].dtype;
  if (walk.isEmpty) return;
  if (wire == src.dtype && to == wire) return moveBits(room, walk, dst, src);
  if (!passesF32(src.dtype)) return refuse("TMOVE_CVT", src.dtype);
  if (!passesF32(wire)) return refuse("TMOVE_CVT", wire);
  if (!passesF32(to)) return refuse("TMOVE_CVT", to);
  onFloats(room, walk, dst, wire, [&](auto& floats, const Box& box) {
    floats.fold(box, sources, ReduceOp::kSum, 1);
  });
}

WL_CORE void moveAdd(uint32_t room, const StridedView& dst, const StridedView& src) {
  const auto source = [&](uint32_t) { return src; };
  const auto target = [&](uint32_t) { return dst; };
  const Views targets = viewsAt(1, target);
  const Walk walk = walkOf(targets, viewsAt(1, source));
  if (!walk.isEmpty) addAtomically(room, walk, targets, src);
}

WL_CORE void fold(uint32_t room, const Views& dst, const Views& src, ReduceOp op, DType wire,
                  uint32_t terms) {
  const DType to = dst[0].dtype;
  const DType from = src.count > 0 ? src[0].dtype : to;
  const Walk walk = walkOf(dst, src);
  if (walk.isEmpty) return;
  if (passesF32(from)) {
    if (!passesF32(wire)) return refuse("TFOLD", wire);
    if (!passesF32(to)) return refuse("TFOLD", to);
    return onFloats(room, walk, dst, wire, [&](auto& floats, const Box& box) {
      floats.fold(box, src, op, terms);
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

WL_CORE void foldWeighted(uint32_t room, const Views& dst, const Views& src,
                          const Weights& weights) {
  const DType dtype = dst[0].dtype;
  const Walk walk = walkOf(dst, src);
  if (walk.isEmpty) return;
  if (!passesF32(dtype)) return refuse("TFOLD_WEIGHTED", dtype);
  onFloats(room, walk, dst, dtype, [&](auto& floats, const Box& box) {
    floats.foldWeighted(box, src, weights);
  });
}

}  // namespace windlass::ascend
