// SPDX-License-Identifier: Apache-2.0
// TMOVE_CVT: strided copy with up to two casts.
#include <cassert>

#include "native/isa/sim/cast_steps.h"
#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/fused.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

// Rows of at least this many elements are cast where they lie.
constexpr int64_t kDirectRow = 32;
// A copy whose rows are not contiguous on both sides goes in boxes of this many bytes, of 64 by 64
// elements at most.
constexpr int64_t kCopyBoxBytes = 16384;
constexpr int64_t kCopyBoxElements = 4096;
// Lines this far apart fall into few cache sets: such a transposed box is staged, so that whole
// rows are written.
constexpr int64_t kConflictStep = 1024;

bool rowsConflict(const Traversal& t, const ByteStrides& dstStep, const StridedView& src) {
  for (uint32_t d = 0; d + 1 < t.ndim; ++d) {
    if (strideOf(t, src, d) == 1) return dstStep.step[d] >= kConflictStep;
  }
  return false;
}

void copyView(const Traversal& t, const StridedView& dst, const StridedView& src) {
  const size_t bytes = sizeOf(dst.dtype);
  const ByteStrides dstStep = byteStrides(t, dst);
  const ByteStrides srcStep = byteStrides(t, src);
  auto* to = static_cast<unsigned char*>(dst.data);
  const auto* from = static_cast<const unsigned char*>(src.data);
  if (rowsContiguous(t, dst) && rowsContiguous(t, src)) {
    copyStrided(to, dstStep, from, srcStep, t.extent, t.ndim, bytes);
    return;
  }
  const auto fits = kCopyBoxBytes / static_cast<int64_t>(bytes);
  int64_t boxExtent[kMaxDims];
  chooseBox(t, &dst, 1, &src, 1, fits < kCopyBoxElements ? fits : kCopyBoxElements, boxExtent);
  const bool staged = rowsContiguous(t, dst) && rowsConflict(t, dstStep, src);
  alignas(64) unsigned char stage[kCopyBoxBytes];
  forEachBox(t, boxExtent, [&](const Box& box) {
    unsigned char* boxTo = addressOf(t, dst, box);
    const unsigned char* boxFrom = addressOf(t, src, box);
    if (staged) {
      const ByteStrides packed = packedStrides(t, box, bytes);
      copyStrided(stage, packed, boxFrom, srcStep, box.extent, t.ndim, bytes);
      copyStrided(boxTo, dstStep, stage, packed, box.extent, t.ndim, bytes);
    } else {
      copyStrided(boxTo, dstStep, boxFrom, srcStep, box.extent, t.ndim, bytes);
    }
  });
}

void castRows(const Traversal& t, const CastSteps& cast, const StridedView& dst,
              const StridedView& src) {
  int64_t boxExtent[kMaxDims];
  for (uint32_t d = 0; d < t.ndim; ++d) boxExtent[d] = 1;
  if (t.ndim > 0) boxExtent[t.ndim - 1] = t.extent[t.ndim - 1];
  forEachBox(t, boxExtent, [&](const Box& box) {
    cast.run(addressOf(t, dst, box), addressOf(t, src, box), static_cast<size_t>(box.count));
  });
}

void castBoxes(const Traversal& t, const CastSteps& cast, const StridedView& dst,
               const StridedView& src) {
  const size_t dstBytes = sizeOf(dst.dtype);
  const size_t srcBytes = sizeOf(src.dtype);
  const ByteStrides dstStep = byteStrides(t, dst);
  const ByteStrides srcStep = byteStrides(t, src);
  int64_t boxExtent[kMaxDims];
  chooseBox(t, &dst, 1, &src, 1, kBoxElements, boxExtent);
  alignas(64) unsigned char srcBox[kBoxBytes];
  alignas(64) unsigned char dstBox[kBoxBytes];
  forEachBox(t, boxExtent, [&](const Box& box) {
    unsigned char* to = addressOf(t, dst, box);
    const unsigned char* from = addressOf(t, src, box);
    const bool gather = !boxContiguous(t, src, box);
    const bool scatter = !boxContiguous(t, dst, box);
    if (gather) {
      copyStrided(srcBox, packedStrides(t, box, srcBytes), from, srcStep, box.extent, t.ndim,
                  srcBytes);
    }
    cast.run(scatter ? dstBox : to, gather ? srcBox : from, static_cast<size_t>(box.count));
    if (scatter) {
      copyStrided(to, dstStep, dstBox, packedStrides(t, box, dstBytes), box.extent, t.ndim,
                  dstBytes);
    }
  });
}

}  // namespace

namespace detail {

void moveConvert(const VectorTable& table, const StridedView& dst, const StridedView& src,
                 const DType* wire) noexcept {
  assert(dst.ndim == src.ndim && dst.ndim <= kMaxDims);
  assert(canCast(src.dtype, wire != nullptr ? *wire : dst.dtype));
  assert(wire == nullptr || canCast(*wire, dst.dtype));
  const Traversal t = makeTraversal(&dst, 1, &src, 1);
  if (t.empty) return;
  const CastSteps cast(table, src.dtype, wire, dst.dtype);
  if (cast.identity()) {
    copyView(t, dst, src);
    return;
  }
  const DefaultFloatMode mode;
  const bool longRows = t.ndim == 0 || t.extent[t.ndim - 1] >= kDirectRow;
  if (longRows && rowsContiguous(t, dst) && rowsContiguous(t, src)) {
    castRows(t, cast, dst, src);
  } else {
    castBoxes(t, cast, dst, src);
  }
}

}  // namespace detail

void TMOVE_CVT(const StridedView& dst, const StridedView& src) noexcept {
  detail::moveConvert(activeTable(), dst, src, nullptr);
}

void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire) noexcept {
  detail::moveConvert(activeTable(), dst, src, &wire);
}

}  // namespace windlass
