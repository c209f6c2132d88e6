// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/operands.h"

#include "native/base/dtype.h"

namespace windlass::checked {

std::string describe(const TileRef& tile) {
  return std::string("tile ") + windlass::nameOf(tile.dtype) + " " + std::to_string(tile.rows) +
         "x" + std::to_string(tile.columns) +
         (tile.at.serial == 0 ? "" : " at " + std::to_string(tile.at.offset));
}

GlobalRef refOf(const StridedView& tensor) {
  GlobalRef ref = {tensor.data, tensor.dtype, {}, {}};
  for (int d = 0; d < kGlobalDims; ++d) {
    ref.shape[d] = tensor.shape[d];
    ref.strides[d] = tensor.strides[d];
  }
  return ref;
}

std::string describe(const GlobalRef& tensor) {
  std::string text = std::string("tensor ") + windlass::nameOf(tensor.dtype) + " ";
  for (int d = 0; d < kGlobalDims; ++d) {
    text += (d == 0 ? "" : "x") + std::to_string(tensor.shape[d]);
  }
  return text;
}

}  // namespace windlass::checked
