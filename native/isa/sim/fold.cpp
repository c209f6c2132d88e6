// SPDX-License-Identifier: Apache-2.0
// TFOLD: an accumulator in the first-level cache takes the sources of each box in order.
#include <cassert>

#include "native/base/cpu.h"
#include "native/isa/sim/cast_steps.h"
#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/fold_steps.h"
#include "native/isa/lists.h"
#include "native/isa/sim/phase_scope.h"
#include "native/isa/sim/row_list.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

// Rows with at least this many elements form boxes of one row. Views with contiguous rows then need
// no staging buffer.
constexpr int64_t kDirectRow = 64;
constexpr int64_t kFoldElements = boxElements(16);
constexpr size_t kFoldBytes = kFoldElements * sizeof(double);  // size of a box of any dtype
constexpr size_t kPage = 4096;

// Returns a box of a view as contiguous elements. Copies them to `stage` unless they are contiguous
// already.
const unsigned char* gatherBox(const Traversal& t, const StridedView& view, const Box& box,
                               unsigned char* stage) {
  const unsigned char* from = addressOf(t, view, box);
  if (boxContiguous(t, view, box)) return from;
  const size_t bytes = sizeOf(view.dtype);
  copyStrided(stage, packedStrides(t, box, bytes), from, byteStrides(t, view), box.extent, t.ndim,
              bytes);
  return stage;
}

void chooseFoldBox(const Traversal& t, ViewList& dst, ViewList& src, int64_t* boxExtent) {
  const bool longRows = t.ndim > 0 && t.extent[t.ndim - 1] >= kDirectRow;
  const auto isRow = [&](const StridedView& view) { return rowsContiguous(t, view); };
  if (!longRows || !ofAll(dst, src, isRow)) {
    chooseBox(t, dst, src, kFoldElements, boxExtent);
    return;
  }
  for (uint32_t d = 0; d < t.ndim; ++d) boxExtent[d] = 1;
  const int64_t row = t.extent[t.ndim - 1];
  boxExtent[t.ndim - 1] = row < kFoldElements ? row : kFoldElements;
}

// Returns true if contiguous rows fold to one row of the same dtype.
bool foldsRows(ViewList& dst, ViewList& src) {
  const auto isRow = [](const StridedView& view) { return view.ndim == 1 && view.strides[0] == 1; };
  if (dst.count() != 1 || !isRow(dst[0]) || dst[0].dtype != src[0].dtype) return false;
  for (uint32_t i = 0; i < src.count(); ++i) {
    if (!isRow(src[i])) return false;
  }
  return true;
}

// Returns an accumulator in `room`, which has kFoldBytes and a page, half a page away from `row`.
// CPUs mistake a load for one of the bytes just stored at the same offset within a page.
unsigned char* apartFrom(const unsigned char* row, unsigned char* room) {
  const auto at = reinterpret_cast<uintptr_t>(room);
  const auto ahead = reinterpret_cast<uintptr_t>(row) + kPage / 2 - at;
  return room + (ahead & (kPage - 64));
}

// Folds rows without a traversal, which costs more than a fold of few elements.
void foldRows(const VectorTable& table, const FoldSteps& steps, const Rows& dst, const Rows& src,
              int64_t elements, DType dtype, uint32_t terms, Stores stores) {
  const auto bytes = static_cast<int64_t>(sizeOf(dtype));
  alignas(64) unsigned char room[kFoldBytes + kPage];
  alignas(64) unsigned char result[kFoldBytes];
  RowList targets(dst);
  RowList sources(src);
  unsigned char* const accumulator = src.count == 0 ? room : apartFrom(sources[0], room);
  // A destination that is also a source is in the caches, so it is not streamed.
  bool streams = detail::streams(stores);
  for (uint32_t d = 0; streams && d < dst.count; ++d) {
    for (uint32_t s = 0; streams && s < src.count; ++s) streams = targets[d] != sources[s];
  }
  for (int64_t start = 0; start < elements; start += kFoldElements) {
    const int64_t left = elements - start;
    const auto count = static_cast<size_t>(left < kFoldElements ? left : kFoldElements);
    const int64_t offset = start * bytes;
    steps.run(accumulator, src.count, terms, count,
              [&](uint32_t i) { return sources[i] + offset; });
    const unsigned char* folded = accumulator;
    if (steps.finish != nullptr) {
      const bool isOne = dst.count == 1;
      const CastLoop finish = isOne && streams ? steps.finishStreaming : steps.finish;
      finish(isOne ? targets[0] + offset : result, accumulator, count);
      if (isOne) continue;
      folded = result;
    }
    for (uint32_t i = 0; i < dst.count; ++i) {
      copyOrStream(table, targets[i] + offset, folded, count * static_cast<size_t>(bytes), streams);
    }
  }
  if (streams) orderStreamed();
}

void foldViews(const VectorTable& table, ViewList& dst, ViewList& src, ReduceOp op,
               const DType* wire, Stores stores) {
  const uint32_t ndst = dst.count();
  const uint32_t nsrc = src.count();
  const DType dtype = src[0].dtype;
  assert(ndst > 0 && nsrc > 0 && canReduce(dtype, op));
  const FoldSteps steps(table, dtype, op);
  const DefaultFloatMode mode;
  const bool streams = detail::streams(stores);
  if (wire == nullptr && !streams && foldsRows(dst, src)) {
    const auto at = [](ViewList& views) {
      return [&views](uint32_t i) { return views[i].data; };
    };
    foldRows(table, steps, rowsAt(1, at(dst)), rowsAt(nsrc, at(src)), dst[0].shape[0], dtype, nsrc,
             Stores::kCached);
    return;
  }
  const Traversal t = makeTraversal(dst, src);
  if (t.isEmpty) return;
  int64_t boxExtent[kMaxDims];
  chooseFoldBox(t, dst, src, boxExtent);
  alignas(64) unsigned char accumulator[kFoldBytes];
  alignas(64) unsigned char stage[kFoldBytes];
  alignas(64) unsigned char result[kFoldBytes];
  DType finished = dtype;
  forEachBox(t, boxExtent, [&](const Box& box) {
    const auto count = static_cast<size_t>(box.count);
    steps.run(accumulator, nsrc, nsrc, count, [&](uint32_t i) {
      return gatherBox(t, src[i], box, i == 0 && steps.start == nullptr ? accumulator : stage);
    });

    if (ndst == 1 && boxContiguous(t, dst[0], box)) {
      const CastSteps finish = CastSteps::ofFold(table, dtype, wire, dst[0].dtype);
      finish.run(addressOf(t, dst[0], box), accumulator, count, streams);
      return;
    }
    for (uint32_t i = 0; i < ndst; ++i) {
      const StridedView& view = dst[i];
      const size_t dstBytes = sizeOf(view.dtype);
      if (i == 0 || view.dtype != finished) {
        CastSteps::ofFold(table, dtype, wire, view.dtype).run(result, accumulator, count);
        finished = view.dtype;
      }
      copyStrided(addressOf(t, view, box), byteStrides(t, view), result,
                  packedStrides(t, box, dstBytes), box.extent, t.ndim, dstBytes,
                  streams ? Stores::kStreaming : Stores::kCached);
    }
  });
  if (streams) orderStreamed();
}

}  // namespace

void detail::fold(const VectorTable& table, const StridedView* dst, uint32_t ndst,
                  const StridedView* src, uint32_t nsrc, ReduceOp op, const DType* wire,
                  Stores stores) noexcept {
  ViewList to(dst, ndst);
  ViewList from(src, nsrc);
  foldViews(table, to, from, op, wire, stores);
}

void TFOLD(const Rows& dst, const Rows& src, int64_t elements, DType dtype, ReduceOp op,
           uint32_t terms, Stores stores) noexcept {
  assert(dst.count > 0 && canReduce(dtype, op));
  const VectorTable& table = activeTable();
  const FoldSteps steps(table, dtype, op);
  const DefaultFloatMode mode;
  foldRows(table, steps, dst, src, elements, dtype, terms, stores);
}

void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op) noexcept {
  detail::fold(activeTable(), dst, ndst, src, nsrc, op, nullptr);
}

void TFOLD(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
           ReduceOp op, DType wire, Stores stores) noexcept {
  detail::fold(activeTable(), dst, ndst, src, nsrc, op, &wire, stores);
}

void TFOLD(const Views& dst, const Views& src, ReduceOp op, DType wire, Stores stores) noexcept {
  ViewList to(dst);
  ViewList from(src);
  foldViews(activeTable(), to, from, op, &wire, stores);
}

}  // namespace windlass
