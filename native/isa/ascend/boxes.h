// SPDX-License-Identifier: Apache-2.0
// Common traversal of views of one shape with up to kMaxDims dimensions. It cuts them into boxes
// that fit into one tile and that a 5-D tensor can describe.
#pragma once

#include <cstdint>

#include "native/isa/ascend/target.h"
#include "native/isa/boxes.h"
#include "native/isa/lists.h"
#include "windlass/kernel.h"

namespace windlass::ascend {

// Tiles of kRows x kColumns elements of any type.
template <int kTileRows, int kTileColumns>
struct Form {
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = kTileColumns;
  template <typename T>
  using Of = Tile<TileType::Vec, T, kRows, kColumns, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
};
constexpr uint32_t kTileElements = 4096;
// Forms for rows of many, some and few elements. Each row starts at a multiple of 32 bytes.
using WideForm = Form<1, 4096>;
using MiddleForm = Form<16, 256>;
using NarrowForm = Form<128, 32>;

struct Walk : Traversal {
  bool hasColumns;  // all views have stride 1 in the last dimension; else columns() is 1

  WL_CORE uint32_t rowDims() const { return hasColumns ? ndim - 1 : ndim; }
  WL_CORE int64_t columns() const { return hasColumns ? extent[ndim - 1] : 1; }
};

// A box of a walk. It covers one index of each row dimension except the innermost four.
struct Box : windlass::Box {
  static constexpr uint32_t kRowDims = 4;

  int64_t rows;
  int64_t columns;
};

// Makes a walk over all views, in the order of the strides of dst[0].
WL_CORE inline Walk walkOf(const Views& dst, const Views& src) {
  const auto ofAll = [&](const auto& holds) {
    for (uint32_t i = 0; i < src.count + dst.count; ++i) {
      if (!holds(i < src.count ? src[i] : dst[i - src.count])) return false;
    }
    return true;
  };
  const StridedView first = dst[0];
  const Traversal all = traversalOf(first, [&](uint32_t outer, uint32_t inner, int64_t extent) {
    return ofAll([&](const StridedView& view) {
      return view.strides[outer] == view.strides[inner] * extent;
    });
  });
  const bool hasColumns = !all.isEmpty && all.ndim > 0 && ofAll([&](const StridedView& view) {
    return view.strides[all.axis[all.ndim - 1]] == 1;
  });
  return {all, hasColumns};
}

// Calls visit(box) for boxes that cover the walk. A box has at most the rows and columns of a tile.
template <class Form, typename Visit>
WL_CORE inline void forEachBox(const Walk& walk, const Visit& visit) {
  int64_t most[kMaxDims];
  const uint32_t rowDims = walk.rowDims();
  int64_t room = Form::kRows;
  for (uint32_t d = rowDims; d-- > 0;) {
    const bool fits = rowDims - d <= Box::kRowDims;
    most[d] = !fits ? 1 : (walk.extent[d] < room ? walk.extent[d] : room);
    // If this dimension is cut, the dimensions around it get one index each.
    room = most[d] < walk.extent[d] ? 1 : room / most[d];
  }
  if (walk.hasColumns) {
    most[rowDims] = walk.columns() < Form::kColumns ? walk.columns() : Form::kColumns;
  }
  windlass::forEachBox(walk, most, [&](const windlass::Box& box) {
    const int64_t columns = walk.hasColumns ? box.extent[rowDims] : 1;
    visit(Box{box, box.count / columns, columns});
  });
}

// Calls run(form) with the form that suits the number of columns of the walk.
template <typename Run>
WL_CORE inline void inForm(const Walk& walk, const Run& run) {
  if (walk.columns() >= 1024) {
    run(WideForm());
  } else if (walk.columns() >= 64) {
    run(MiddleForm());
  } else {
    run(NarrowForm());
  }
}

// Tensor that describes a box of a view. T has the size of the view's elements.
template <typename T>
using Region = GlobalTensor<T, Shape<>, Stride<>>;

template <typename T>
WL_CORE inline Region<T> regionOf(const Walk& walk, const Box& box, const StridedView& view) {
  int64_t shape[kGlobalDims] = {1, 1, 1, 1, box.columns};
  int64_t stride[kGlobalDims] = {0, 0, 0, 0, 1};
  int64_t first = 0;
  for (uint32_t d = 0; d < walk.ndim; ++d) first += box.start[d] * view.strides[walk.axis[d]];
  const uint32_t rowDims = walk.rowDims();
  for (uint32_t d = 0; d < rowDims && d < Box::kRowDims; ++d) {
    const uint32_t dim = rowDims - 1 - d;
    shape[Box::kRowDims - 1 - d] = box.extent[dim];
    stride[Box::kRowDims - 1 - d] = view.strides[walk.axis[dim]];
  }
  for (uint32_t d = rowDims; d < Box::kRowDims; ++d) {
    const uint32_t dim = Box::kRowDims - 1 - d;
    stride[dim] = stride[dim + 1] * shape[dim + 1];
  }
  return Region<T>(static_cast<T*>(view.data) + first,
                   Shape<>(shape[0], shape[1], shape[2], shape[3], shape[4]),
                   Stride<>(stride[0], stride[1], stride[2], stride[3], stride[4]));
}

}  // namespace windlass::ascend
