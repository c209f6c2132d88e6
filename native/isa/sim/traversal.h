// SPDX-License-Identifier: Apache-2.0
// How several views of one shape are walked together: dimensions ordered by the first view's
// strides, merged where all views permit, and cut into boxes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"
#include "windlass/kernel.h"

namespace windlass {

struct Traversal {
  uint32_t ndim = 0;         // none of extent 1
  int64_t extent[kMaxDims];  // outermost first
  uint32_t axis[kMaxDims];   // the views' dimension whose strides apply
  bool empty = false;        // some extent is 0
};

// A box of a traversal.
struct Box {
  int64_t start[kMaxDims];
  int64_t extent[kMaxDims];
  int64_t count;  // elements
};

// Views by their number: those of an array where they lie, those of a list a few at hand. What []
// returns lasts until the next [] of the same list.
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

// Walks the first of dst in the order of its strides.
Traversal makeTraversal(ViewList& dst, ViewList& src) noexcept;

inline int64_t strideOf(const Traversal& t, const StridedView& view, uint32_t d) noexcept {
  return view.strides[t.axis[d]];
}

// True when the innermost dimension steps by one element (a traversal of one element does).
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

// True when the box's elements lie one after another in the view.
bool boxContiguous(const Traversal& t, const StridedView& view, const Box& box) noexcept;

// Extents of boxes of at most `limit` elements; square ones where some view's rows are not
// contiguous but another dimension of it is.
void chooseBox(const Traversal& t, ViewList& dst, ViewList& src, int64_t limit,
               int64_t* boxExtent) noexcept;

// Calls visit(const Box&) for boxes of at most `boxExtent` that cover the traversal, in order.
template <typename Visit>
void forEachBox(const Traversal& t, const int64_t* boxExtent, Visit&& visit) noexcept {
  Box box;
  for (uint32_t d = 0; d < t.ndim; ++d) box.start[d] = 0;
  for (;;) {
    box.count = 1;
    for (uint32_t d = 0; d < t.ndim; ++d) {
      const int64_t left = t.extent[d] - box.start[d];
      box.extent[d] = left < boxExtent[d] ? left : boxExtent[d];
      box.count *= box.extent[d];
    }
    visit(static_cast<const Box&>(box));
    uint32_t d = t.ndim;
    for (;;) {
      if (d == 0) return;
      --d;
      box.start[d] += boxExtent[d];
      if (box.start[d] < t.extent[d]) break;
      box.start[d] = 0;
    }
  }
}

// Strides in bytes, outermost first; equal extents, none zero.
struct ByteStrides {
  int64_t step[kMaxDims];
};
ByteStrides byteStrides(const Traversal& t, const StridedView& view) noexcept;
// Of a packed buffer that holds the box.
ByteStrides packedStrides(const Traversal& t, const Box& box, size_t elementBytes) noexcept;

// A dimension of a destination and a source; steps in bytes.
struct Dimension {
  int64_t extent;
  int64_t dst;
  int64_t src;
};

// Calls visit(dst, src) for the addresses of each index, in order; no dimensions, one address.
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

// Puts last the dimension along which rows are visited one after another, and next to last the one
// whose rows lie closest to those.
void orderRows(Dimension* dims, uint32_t count) noexcept;

// Calls run(dst, dstStep, src, srcStep, rows) for runs of rows that cover the dimensions, which
// change order; no dimensions, one row. Where there are runs beside each other they are short, so
// that rows that are neighbours on either side are visited soon one after another; each fetches
// ahead what the next one along its dimension begins with.
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

// Copies `rows` rows of `rowBytes` bytes; steps are from one row to the next, in bytes.
void copyRows(unsigned char* dst, int64_t dstStep, const unsigned char* src, int64_t srcStep,
              int64_t rows, size_t rowBytes) noexcept;

// Copies ndim-dimensional strided elements. Streaming stores leave SFENCE to the caller.
void copyStrided(unsigned char* dst, const ByteStrides& dstStep, const unsigned char* src,
                 const ByteStrides& srcStep, const int64_t* extent, uint32_t ndim,
                 size_t elementBytes, Stores stores = Stores::kCached) noexcept;

}  // namespace windlass
