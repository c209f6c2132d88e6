// SPDX-License-Identifier: Apache-2.0
// Operands of instructions as plain data, without the C++ types of tiles and tensors.
#pragma once

#include <cstdint>
#include <string>

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

// Calls visit(address, bytes) for each contiguous run of bytes of the tensor. Adjacent runs are
// merged.
template <typename Visit>
void forEachRun(const GlobalRef& tensor, Visit&& visit) {
  const auto size = static_cast<int64_t>(sizeOf(tensor.dtype));
  const bool contiguous = tensor.strides[4] == 1 || tensor.shape[4] == 1;
  const int64_t runs = tensor.rows() * (contiguous ? 1 : tensor.shape[4]);
  const auto runBytes = static_cast<uint64_t>(contiguous ? tensor.shape[4] * size : size);
  const auto base = reinterpret_cast<uint64_t>(tensor.data);
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t index[kGlobalDims] = {};
  for (int64_t run = 0; run < runs; ++run) {
    int64_t elements = 0;
    for (int d = 0; d < kGlobalDims; ++d) elements += index[d] * tensor.strides[d];
    const uint64_t at = base + static_cast<uint64_t>(elements * size);
    if (at != end || run == 0) {
      if (run > 0) visit(begin, end - begin);
      begin = at;
    }
    end = at + runBytes;
    for (int d = contiguous ? 3 : 4; d >= 0 && ++index[d] == tensor.shape[d]; --d) index[d] = 0;
  }
  if (runs > 0) visit(begin, end - begin);
}

}  // namespace windlass::checked
