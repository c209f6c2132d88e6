// SPDX-License-Identifier: Apache-2.0
// TMOVE_CVT: a strided copy with up to two casts.
#include <algorithm>
#include <cassert>

#include "native/base/cpu.h"
#include "native/isa/sim/cast_steps.h"
#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/phase_scope.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

// Rows with at least this many elements are cast in place.
constexpr int64_t kDirectRow = 128;
// Number of elements of shorter rows in the staging buffer.
constexpr size_t kStagedElements = 1024;
void copyView(const Traversal& t, ViewList& dsts, ViewList& srcs, Stores stores) {
  const StridedView dst = dsts[0];
  const StridedView src = srcs[0];
  const size_t bytes = sizeOf(dst.dtype);
  const ByteStrides dstStep = byteStrides(t, dst);
  const ByteStrides srcStep = byteStrides(t, src);
  if (rowsContiguous(t, dst) && rowsContiguous(t, src)) {
    copyStrided(static_cast<unsigned char*>(dst.data), dstStep,
                static_cast<const unsigned char*>(src.data), srcStep, t.extent, t.ndim, bytes,
                stores);
    return;
  }
  int64_t boxExtent[kMaxDims];
  chooseBox(t, dsts, srcs, boxElements(bytes), boxExtent);
  forEachBox(t, boxExtent, [&](const Box& box) {
    copyStrided(addressOf(t, dst, box), dstStep, addressOf(t, src, box), srcStep, box.extent,
                t.ndim, bytes, stores);
  });
}

// Transposes views and casts elements at most once. The innermost dimension is contiguous in the
// destination, another one in the source. Two dimensions are a plane, moved in parts whose pages
// the TLBs hold. Of more, each box is packed in the order of the source, and then is a plane.
class Transposer {
 public:
  Transposer(const VectorTable& table, const Traversal& t, const CastSteps& cast, ViewList& dsts,
             ViewList& srcs, bool streams)
      : t_(t),
        dst_(dsts[0]),
        src_(srcs[0]),
        bytes_(static_cast<int64_t>(sizeOf(src_.dtype))),
        loop_(table.transposeOf(sizeOf(src_.dtype))),
        cast_(cast.only(streams)),
        streams_(streams) {
    chooseBox(t, dsts, srcs, (t.ndim == 2 ? kPlaneBytes : kPackedBytes) / bytes_, boxExtent_);
    // Columns of the plane are contiguous in the destination. Boxes follow one another along the
    // rows, in the order of the source.
    columnsFrom_ = t.ndim;
    for (int64_t columns = 1; columnsFrom_ > 0; columns *= boxExtent_[--columnsFrom_]) {
      const uint32_t d = columnsFrom_ - 1;
      const bool isColumn = strideOf(t, dst_, d) == columns && strideOf(t, src_, d) != 1;
      if (boxExtent_[d] > 1 && !isColumn) break;
    }
    for (uint32_t d = 0; d < columnsFrom_; ++d) {
      rows_ *= boxExtent_[d];
      for (uint32_t i = d; i > 0 && strideOf(t_, src_, i - 1) < strideOf(t_, src_, i); --i) {
        std::swap(t_.axis[i - 1], t_.axis[i]);
        std::swap(t_.extent[i - 1], t_.extent[i]);
        std::swap(boxExtent_[i - 1], boxExtent_[i]);
      }
    }
    dstStep_ = byteStrides(t_, dst_);
    srcStep_ = byteStrides(t_, src_);
  }

  static bool suits(const Traversal& t, const StridedView& dst, const StridedView& src) {
    if (t.ndim < 2 || !rowsContiguous(t, dst)) return false;
    for (uint32_t d = 0; d + 1 < t.ndim; ++d) {
      if (strideOf(t, src, d) == 1) return true;
    }
    return false;
  }
  // Returns false if a box has too many rows.
  bool fits() const { return t_.ndim == 2 || rows_ <= kMostRows; }

  void run() {
    forEachBox(t_, boxExtent_, [&](const Box& box) {
      unsigned char* to = addressOf(t_, dst_, box);
      const unsigned char* from = addressOf(t_, src_, box);
      if (t_.ndim == 2) {
        move({to, dstStep_.step[0], nullptr, from, srcStep_.step[1], box.extent[0], box.extent[1]});
      } else {
        moveBox(to, from, box);
      }
    });
  }

 private:
  static constexpr int64_t kPlaneBytes = 256 << 10;
  static constexpr int64_t kPackedBytes = 16 << 10;
  static constexpr int64_t kMostRows = 256;

  void move(const Plane& plane) const { loop_(plane, cast_, sizeOf(dst_.dtype), streams_); }

  [[gnu::noinline]] void moveBox(unsigned char* to, const unsigned char* from, const Box& box) {
    alignas(64) unsigned char packed[kPackedBytes];
    Dimension dims[kMaxDims];
    // First the rows, whose offsets are listed, and then the columns and rows of the packed box.
    for (uint32_t d = 0; d < columnsFrom_; ++d) dims[d] = {box.extent[d], dstStep_.step[d], 0};
    int64_t rows = 0;
    forEachAddress(dims, columnsFrom_, to, from, [&](unsigned char* d, const unsigned char*) {
      offsets_[rows++] = d - to;
    });
    uint32_t count = 0;
    int64_t step = box.count * bytes_;
    for (uint32_t i = 0; i < t_.ndim; ++i) {
      const uint32_t d = (columnsFrom_ + i) % t_.ndim;
      if (box.extent[d] == 1) continue;
      step /= box.extent[d];
      dims[count++] = {box.extent[d], step, srcStep_.step[d]};
    }
    int64_t rowBytes = bytes_;
    while (count > 0 && dims[count - 1].src == rowBytes) rowBytes *= dims[--count].extent;
    const Dimension along = count > 0 ? dims[--count] : Dimension{1, 0, 0};
    const int64_t next = count > 0 ? dims[count - 1].src : 0;
    forEachAddress(dims, count, packed, from, [&](unsigned char* d, const unsigned char* s) {
      for (int64_t at = 0; at < along.extent * along.src; at += 64)
        __builtin_prefetch(s + next + at);
      copyRows(d, along.dst, s, along.src, along.extent, static_cast<size_t>(rowBytes));
    });
    move({to, 0, offsets_, packed, rows * bytes_, rows, box.count / rows});
  }

  Traversal t_;
  const StridedView dst_;
  const StridedView src_;
  const int64_t bytes_;
  ByteStrides dstStep_;
  ByteStrides srcStep_;
  const TransposeLoop loop_;
  const CastLoop cast_;
  const bool streams_;
  int64_t boxExtent_[kMaxDims];
  uint32_t columnsFrom_;
  int64_t rows_ = 1;
  int64_t offsets_[kMostRows];
};

// Moves transposed views, cast at most once. Returns false for other views.
bool transposeViews(const VectorTable& table, const Traversal& t, const CastSteps& cast,
                    ViewList& dsts, ViewList& srcs, Stores stores) {
  if (cast.count() > 1 || !Transposer::suits(t, dsts[0], srcs[0])) return false;
  Transposer transposer(table, t, cast, dsts, srcs, stores == Stores::kStreaming);
  if (!transposer.fits()) return false;
  transposer.run();
  return true;
}

// Casts rows that are contiguous on both sides. Long rows are cast in place. Short rows are cast
// several at a time, by a loop over rows, or through a staging buffer for each side with gaps.
class RowCast {
 public:
  RowCast(const CastSteps& cast, size_t dstBytes, size_t srcBytes, bool streams)
      : cast_(cast), dstBytes_(dstBytes), srcBytes_(srcBytes), streams_(streams) {}

  void run(unsigned char* dst, int64_t dstStep, const unsigned char* src, int64_t srcStep,
           int64_t rows, int64_t length) {
    const bool packed = dstStep == length * static_cast<int64_t>(dstBytes_) &&
                        srcStep == length * static_cast<int64_t>(srcBytes_);
    if (packed) {
      length *= rows;
      rows = 1;
    }
    if (rows == 1 || length >= kDirectRow) {
      for (int64_t row = 0; row < rows; ++row) {
        cast_.run(dst + row * dstStep, src + row * srcStep, static_cast<size_t>(length), streams_);
      }
    } else {
      runShort(dst, dstStep, src, srcStep, rows, static_cast<size_t>(length));
    }
  }

 private:
  void runShort(unsigned char* dst, int64_t dstStep, const unsigned char* src, int64_t srcStep,
                int64_t rows, size_t count) {
    const auto dstRow = static_cast<int64_t>(count * dstBytes_);
    const auto srcRow = static_cast<int64_t>(count * srcBytes_);
    const auto atOnce = static_cast<int64_t>(kStagedElements / count);
    const bool scatter = dstStep != dstRow;
    const CastRowsLoop loop = count % kCastBlock == 0 ? cast_.rows() : nullptr;
    if (loop != nullptr && (scatter || !streams_)) {
      loop(dst, dstStep, src, srcStep, rows, count);
      return;
    }
    const bool gather = srcStep != srcRow;
    for (int64_t row = 0; row < rows; row += atOnce) {
      const int64_t n = rows - row < atOnce ? rows - row : atOnce;
      const unsigned char* from = src + row * srcStep;
      unsigned char* to = dst + row * dstStep;
      const size_t elements = static_cast<size_t>(n) * count;
      if (gather) copyRows(srcStage_, srcRow, from, srcStep, n, count * srcBytes_);
      const unsigned char* gathered = gather ? srcStage_ : from;
      if (scatter) {
        cast_.run(dstStage_, gathered, elements);
        copyRows(to, dstStep, dstStage_, dstRow, n, count * dstBytes_);
      } else {
        cast_.run(to, gathered, elements, streams_);
      }
    }
  }

  const CastSteps& cast_;
  const size_t dstBytes_;
  const size_t srcBytes_;
  const bool streams_;
  alignas(64) unsigned char srcStage_[kStagedElements * sizeof(double)];
  alignas(64) unsigned char dstStage_[kStagedElements * sizeof(double)];
};

void castRows(const Traversal& t, const CastSteps& cast, const StridedView& dst,
              const StridedView& src, Stores stores) {
  const ByteStrides dstStep = byteStrides(t, dst);
  const ByteStrides srcStep = byteStrides(t, src);
  const uint32_t inner = t.ndim - 1;
  Dimension dims[kMaxDims];
  for (uint32_t d = 0; d < inner; ++d) dims[d] = {t.extent[d], dstStep.step[d], srcStep.step[d]};
  RowCast rowCast(cast, sizeOf(dst.dtype), sizeOf(src.dtype), stores == Stores::kStreaming);
  forEachRun(dims, inner, static_cast<unsigned char*>(dst.data),
             static_cast<const unsigned char*>(src.data),
             [&](unsigned char* to, int64_t toStep, const unsigned char* from, int64_t fromStep,
                 int64_t rows) { rowCast.run(to, toStep, from, fromStep, rows, t.extent[inner]); });
}

// Reads and casts each box once, and writes it to every destination while it is in the first-level
// cache.
void moveBoxes(const Traversal& t, const CastSteps& cast, ViewList& dst, ViewList& srcs,
               Stores stores) {
  const StridedView src = srcs[0];
  const size_t dstBytes = sizeOf(dst[0].dtype);
  const size_t srcBytes = sizeOf(src.dtype);
  const ByteStrides srcStep = byteStrides(t, src);
  int64_t boxExtent[kMaxDims];
  const size_t widest = srcBytes < dstBytes ? dstBytes : srcBytes;
  chooseBox(t, dst, srcs, boxElements(widest), boxExtent);
  const bool packs = !cast.identity() || !rowsContiguous(t, src);
  alignas(64) unsigned char srcBox[kBoxBytes];
  alignas(64) unsigned char dstBox[kBoxBytes];
  forEachBox(t, boxExtent, [&](const Box& box) {
    const unsigned char* from = addressOf(t, src, box);
    ByteStrides fromStep = srcStep;
    if (packs) {
      if (!boxContiguous(t, src, box)) {
        copyStrided(srcBox, packedStrides(t, box, srcBytes), from, srcStep, box.extent, t.ndim,
                    srcBytes);
        from = srcBox;
      }
      if (!cast.identity()) {
        const bool straight = dst.count() == 1 && boxContiguous(t, dst[0], box);
        unsigned char* to = straight ? addressOf(t, dst[0], box) : dstBox;
        cast.run(to, from, static_cast<size_t>(box.count),
                 straight && stores == Stores::kStreaming);
        if (straight) return;
        from = dstBox;
      }
      fromStep = packedStrides(t, box, dstBytes);
    }
    for (uint32_t i = 0; i < dst.count(); ++i) {
      copyStrided(addressOf(t, dst[i], box), byteStrides(t, dst[i]), from, fromStep, box.extent,
                  t.ndim, dstBytes, stores);
    }
  });
}

// Moves to one destination.
void moveOne(const Traversal& t, const CastSteps& cast, ViewList& dst, ViewList& srcs,
             Stores stores) {
  if (cast.identity()) return copyView(t, dst, srcs, stores);
  if (t.ndim > 0 && rowsContiguous(t, dst[0]) && rowsContiguous(t, srcs[0]))
    return castRows(t, cast, dst[0], srcs[0], stores);
  moveBoxes(t, cast, dst, srcs, stores);
}

void moveViews(const VectorTable& table, ViewList& dst, const StridedView& src, const DType* wire,
               Stores asked) {
  const Stores stores = detail::streams(asked) ? Stores::kStreaming : Stores::kCached;
  const DType dtype = dst[0].dtype;
  assert(dst.count() >= 1 && dst[0].ndim == src.ndim && src.ndim <= kMaxDims);
  assert(canCast(src.dtype, wire != nullptr ? *wire : dtype));
  assert(wire == nullptr || canCast(*wire, dtype));
  ViewList from(&src, 1);
  const Traversal t = makeTraversal(dst, from);
  if (t.isEmpty) return;
  const CastSteps cast(table, src.dtype, wire, dtype);
  const DefaultFloatMode mode;
  if (dst.count() > 1) {
    moveBoxes(t, cast, dst, from, stores);
  } else if (!transposeViews(table, t, cast, dst, from, stores)) {
    moveOne(t, cast, dst, from, stores);
  }
  if (stores == Stores::kStreaming) orderStreamed();
}

}  // namespace

void detail::moveConvert(const VectorTable& table, const StridedView* dst, uint32_t ndst,
                         const StridedView& src, const DType* wire, Stores stores) noexcept {
  ViewList views(dst, ndst);
  moveViews(table, views, src, wire, stores);
}

void TMOVE_CVT(const StridedView& dst, const StridedView& src) noexcept {
  detail::moveConvert(activeTable(), &dst, 1, src, nullptr);
}

void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire, Stores stores) noexcept {
  detail::moveConvert(activeTable(), &dst, 1, src, &wire, stores);
}

void TMOVE_CVT(const StridedView* dst, uint32_t ndst, const StridedView& src, DType wire,
               Stores stores) noexcept {
  detail::moveConvert(activeTable(), dst, ndst, src, &wire, stores);
}

void TMOVE_CVT(const Views& dst, const StridedView& src, DType wire, Stores stores) noexcept {
  ViewList views(dst);
  moveViews(activeTable(), views, src, &wire, stores);
}

}  // namespace windlass
