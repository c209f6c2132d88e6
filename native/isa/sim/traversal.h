// SPDX-License-Identifier: Apache-2.0
// Traversal of lists of views, and copies of their boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "native/isa/boxes.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"
#include "windlass/kernel.h"

namespace windlass {

// Access to views by number, in place for an array, or through a small buffer for a list. The
// result of [] is valid until the next [] of the same list.
class ViewList {
 public:
  ViewList(const StridedView* views, uint32_t count)
      : list_{count, nullptr, nullptr}, views_(views), atHand_(count) {}
  explicit ViewList(const Views& list) : list_(list), views_(few_) { load(0); }
  ViewList(const ViewList&) = delete;
  ViewList& operator=(const ViewList&) = delete;

  uint32_t count() const { return list_.count; }
  const StridedView& operator[](uint32_t i) {
    if (i - first_ >= atHand_) load(i / kAtHand * kAtHand);
    return views_[i - first_];
  }

 private:
  static constexpr uint32_t kAtHand = 32;

  void load(uint32_t first) {
    const uint32_t left = list_.count - first;
    first_ = first;
    atHand_ = left < kAtHand ? left : kAtHand;
    list_.list(list_.context, first, atHand_, few_);
  }

  const Views list_;
  const StridedView* views_;
  uint32_t first_ = 0;
  uint32_t atHand_;
  StridedView few_[kAtHand];
};

// Returns true if visit(view) is true for all views of both lists.
template <typename Visit>
bool ofAll(ViewList& dst, ViewList& src, Visit&& visit) {
  for (ViewList* list : {&dst, &src}) {
    for (uint32_t i = 0; i < list->count(); ++i) {
      if (!visit((*list)[i])) return false;
    }
  }
  return true;
}

// Makes a traversal in the order of the strides of dst[0].
Traversal makeTraversal(ViewList& dst, ViewList& src) noexcept;

inline int64_t strideOf(const Traversal& t, const StridedView& view, uint32_t d) noexcept {
  return view.strides[t.axis[d]];
}

// Returns true if the innermost dimension steps by one element, or if the traversal has one
// element.
inline bool rowsContiguous(const Traversal& t, const StridedView& view) noexcept {
  return t.ndim == 0 || strideOf(t, view, t.ndim - 1) == 1;
}

// Address of the box's first element.
inline unsigned char* addressOf(const Traversal& t, const StridedView& view,
                                const Box& box) noexcept {
  int64_t offset = 0;
  for (uint32_t d = 0; d < t.ndim; ++d) offset += box.start[d] * strideOf(t, view, d);
  return static_cast<unsigned char*>(view.data) + offset * static_cast<int64_t>(sizeOf(view.dtype));
}

// Returns true if the box's elements are contiguous in the view.
bool boxContiguous(const Traversal& t, const StridedView& view, const Box& box) noexcept;

// Chooses the extents of boxes with at most `limit` elements. If a view is contiguous along another
// dimension than the first one, boxes have runs of both.
void chooseBox(const Traversal& t, ViewList& dst, ViewList& src, int64_t limit,
               int64_t* boxExtent) noexcept;

// Strides in bytes, outermost first.
struct ByteStrides {
  int64_t step[kMaxDims];
};
ByteStrides byteStrides(const Traversal& t, const StridedView& view) noexcept;
// Returns the strides of a packed buffer that holds the box.
ByteStrides packedStrides(const Traversal& t, const Box& box, size_t elementBytes) noexcept;

// A dimension of a destination and a source. Steps are in bytes.
struct Dimension {
  int64_t extent;
  int64_t dst;
  int64_t src;
};

// Calls visit(dst, src) for the addresses of each index, in order. Without dimensions, it visits
// one address.
template <class Visit>
void forEachAddress(const Dimension* dims, uint32_t count, unsigned char* dst,
                    const unsigned char* src, Visit&& visit) noexcept {
  int64_t index[kMaxDims] = {};
  for (;;) {
    visit(dst, src);
    uint32_t d = count;
    for (;;) {
      if (d == 0) return;
      --d;
      dst += dims[d].dst;
      src += dims[d].src;
      if (++index[d] < dims[d].extent) break;
      dst -= dims[d].dst * dims[d].extent;
      src -= dims[d].src * dims[d].extent;
      index[d] = 0;
    }
  }
}

// Puts the dimension of consecutive rows last. Puts the other dimension with the smallest step next
// to last.
void orderRows(Dimension* dims, uint32_t count) noexcept;

// Calls run(dst, dstStep, src, srcStep, rows) for runs of rows that cover the dimensions. Without
// dimensions there is one row. Reorders `dims`. Parallel runs are short, so that neighbouring rows
// are visited soon after one another. Each run prefetches the start of the next run along its
// dimension.
template <class Run>
void forEachRun(Dimension* dims, uint32_t count, unsigned char* dst, const unsigned char* src,
                Run&& run) noexcept {
  constexpr int64_t kRunsBeside = 8;
  constexpr Dimension kNone{1, 0, 0};
  orderRows(dims, count);
  const Dimension along = count > 0 ? dims[count - 1] : kNone;
  const Dimension beside = count > 1 ? dims[count - 2] : kNone;
  const int64_t runRows = count > 1 ? kMostRowsAhead : along.extent;
  forEachAddress(
      dims, count > 2 ? count - 2 : 0, dst, src, [&](unsigned char* d, const unsigned char* s) {
        for (int64_t left = 0; left < beside.extent; left += kRunsBeside) {
          const int64_t right =
              left + kRunsBeside < beside.extent ? left + kRunsBeside : beside.extent;
          for (int64_t row = 0; row < along.extent; row += runRows) {
            const int64_t rows = along.extent - row < runRows ? along.extent - row : runRows;
            for (int64_t k = left; k < right; ++k) {
              run(d + k * beside.dst + row * along.dst, along.dst,
                  s + k * beside.src + row * along.src, along.src, rows);
            }
          }
        }
      });
}

// Copies `rows` rows of `rowBytes` bytes. Steps are from one row to the next, in bytes.
void copyRows(unsigned char* dst, int64_t dstStep, const unsigned char* src, int64_t srcStep,
              int64_t rows, size_t rowBytes) noexcept;

// Copies ndim-dimensional strided elements. No extent may be 0. After streaming stores, the caller
// must issue SFENCE.
void copyStrided(unsigned char* dst, const ByteStrides& dstStep, const unsigned char* src,
                 const ByteStrides& srcStep, const int64_t* extent, uint32_t ndim,
                 size_t elementBytes, Stores stores = Stores::kCached) noexcept;

}  // namespace windlass
