// SPDX-License-Identifier: Apache-2.0
// Operands of instructions as plain data, without the C++ types of tiles and tensors.
#pragma once

#include <cstdint>
#include <string>

#include "native/isa/boxes.h"
#include "native/isa/shape.h"
#include "windlass/kernel.h"

namespace windlass::checked {

// Placement of a tile by TASSIGN. Copies of a tile share it.
struct Placement {
  uint32_t serial = 0;  // number of the placement on its core, from 1; 0: never placed
  uint32_t offset = 0;
  uint64_t placedAt = 0;  // number of instructions that its core had issued before
  bool usable = false;    // false: TASSIGN reported a breach
};

struct TileRef {
  Placement at;
  DType dtype;
  int64_t rows;
  int64_t columns;
  int64_t validRows;  // negative: never set
  int64_t validColumns;
  bool dynamicRows;  // the number of valid rows is set at run time
  bool dynamicColumns;

  int64_t rowBytes() const { return columns * static_cast<int64_t>(sizeOf(dtype)); }
  int64_t bytes() const { return rows * rowBytes(); }
  int64_t validRowBytes() const { return validColumns * static_cast<int64_t>(sizeOf(dtype)); }
  uint64_t validBytes() const { return static_cast<uint64_t>(validRows * validRowBytes()); }
};
// Returns for example "tile f32 16x32 at 4096".
std::string describe(const TileRef& tile);

// A tensor with strides in elements. Dimension 3 counts rows, dimension 4 columns.
struct GlobalRef {
  void* data;
  DType dtype;
  int64_t shape[kGlobalDims];
  int64_t strides[kGlobalDims];

  int64_t rows() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  uint64_t bytes() const { return static_cast<uint64_t>(rows() * shape[4]) * sizeOf(dtype); }
};
GlobalRef refOf(const StridedView& tensor);
// Returns for example "tensor f32 1x1x1x16x32".
std::string describe(const GlobalRef& tensor);

// The tile's valid part, in a unified buffer, in the shape of a tensor. Dimensions 0 to 3 of the
// tensor together count the tile's rows.
struct TileView {
  int64_t strides[kGlobalDims];
  StridedView view;

  TileView(unsigned char* buffer, const TileRef& tile, const int64_t* shape)
      : view{buffer + tile.at.offset, tile.dtype, kGlobalDims, shape, strides} {
    strides[4] = 1;
    int64_t step = tile.columns;
    for (int d = 3; d >= 0; --d) {
      strides[d] = step;
      step *= shape[d];
    }
  }
};

// Calls visit(address, bytes) for each contiguous run of bytes of the tensor. Adjacent runs are
// merged.
template <typename Visit>
void forEachRun(const GlobalRef& tensor, Visit&& visit) {
  if (tensor.bytes() == 0) return;
  const auto size = static_cast<int64_t>(sizeOf(tensor.dtype));
  const bool contiguous = tensor.strides[4] == 1 || tensor.shape[4] == 1;
  const int64_t run[] = {1, 1, 1, 1, contiguous ? tensor.shape[4] : 1};
  Traversal all;
  all.ndim = kGlobalDims;
  for (int d = 0; d < kGlobalDims; ++d) all.extent[d] = tensor.shape[d];
  uint64_t begin = 0;
  uint64_t end = 0;
  forEachBox(all, run, [&](const Box& box) {
    auto at = reinterpret_cast<uint64_t>(tensor.data);
    for (int d = 0; d < kGlobalDims; ++d)
      at += static_cast<uint64_t>(box.start[d] * tensor.strides[d] * size);
    if (at != end) {
      if (end != 0) visit(begin, end - begin);
      begin = at;
    }
    end = at + static_cast<uint64_t>(box.count * size);
  });
  visit(begin, end - begin);
}

}  // namespace windlass::checked
