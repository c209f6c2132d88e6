// SPDX-License-Identifier: Apache-2.0
// Types of the tile ISA under its own names: tensors, tiles, signals.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/checked/core.h"
#include "native/isa/element_types.h"
#include "native/isa/shape.h"

#define __gm__

namespace pto {
inline namespace checked {

// A 5-D view of global memory: dimension 3 counts rows, dimension 4 columns.
template <typename Element, typename ShapeT, typename StrideT, Layout kLayout = Layout::ND>
class GlobalTensor {
 public:
  using RawDType = std::remove_const_t<Element>;
  using DType = __gm__ Element;
  static constexpr Layout layout = kLayout;

  explicit GlobalTensor(__gm__ Element* data, const ShapeT& shape = ShapeT(),
                        const StrideT& stride = StrideT())
      : data_(data), shape_(shape), stride_(stride) {}

  __gm__ Element* data() { return data_; }
  int64_t GetShape(int d) { return shape_.shape[d]; }
  int64_t GetStride(int d) { return stride_.stride[d]; }

  windlass::checked::GlobalRef ref() {
    windlass::checked::GlobalRef ref = {
        const_cast<RawDType*>(data_), windlass::DTypeOf<RawDType>::value, {}, {}};
    for (int d = 0; d < windlass::kGlobalDims; ++d) {
      ref.shape[d] = GetShape(d);
      ref.strides[d] = GetStride(d);
    }
    return ref;
  }

 private:
  Element* data_;
  ShapeT shape_;
  StrideT stride_;
};

// A tile in the unified buffer, at the offset that TASSIGN sets. The constructor sets dynamic valid
// sizes; without it they are invalid. TASSIGN reports row and total sizes that the toolkit's
// compiler would refuse.
template <TileType kType, typename Element, int kRows, int kCols,
          BLayout kLayout = BLayout::RowMajor, int kValidRow = kRows, int kValidCol = kCols,
          SLayout kInner = SLayout::NoneBox, int kFractal = 512, PadValue kPad = PadValue::Null>
class Tile {
  static_assert(kType == TileType::Vec && kLayout == BLayout::RowMajor &&
                    kInner == SLayout::NoneBox,
                "the checked targets run row-major Vec tiles");

 public:
  using DType = Element;
  static constexpr int Rows = kRows;
  static constexpr int Cols = kCols;
  static constexpr int ValidRow = kValidRow;
  static constexpr int ValidCol = kValidCol;

  Tile() = default;
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<R == DYNAMIC && C == DYNAMIC, int> = 0>
  Tile(int64_t validRows, int64_t validCols) : validRows_(validRows), validCols_(validCols) {}
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<(R == DYNAMIC) != (C == DYNAMIC), int> = 0>
  explicit Tile(int64_t valid) {
    (kValidRow == DYNAMIC ? validRows_ : validCols_) = valid;
  }

  unsigned GetValidRow() { return static_cast<unsigned>(validRows_); }
  unsigned GetValidCol() { return static_cast<unsigned>(validCols_); }
  // Address of the elements in the running core's unified buffer.
  Element* data() {
    return reinterpret_cast<Element*>(windlass::checked::Core::current().buffer() + at_.offset);
  }

  void place(uint64_t offset) { at_ = windlass::checked::Core::current().place(ref(), offset); }
  windlass::checked::TileRef ref() {
    return {at_,
            windlass::DTypeOf<Element>::value,
            kRows,
            kCols,
            validRows_,
            validCols_,
            kValidRow == DYNAMIC,
            kValidCol == DYNAMIC};
  }
  // Takes the valid size that TPUT or TGET left.
  void take(const windlass::checked::TileRef& ref) {
    validRows_ = ref.validRows;
    validCols_ = ref.validColumns;
  }

 private:
  windlass::checked::Placement at_;
  int64_t validRows_ = kValidRow;
  int64_t validCols_ = kValidCol;
};

}  // namespace checked

namespace comm {
inline namespace checked {

// A signal of one int32.
class Signal {
 public:
  explicit Signal(__gm__ int32_t* word) : word_(word) {}
  __gm__ int32_t* data() { return word_; }

 private:
  int32_t* word_;
};

// R x C signals. rowStride counts words.
template <int R, int C>
class Signal2D {
 public:
  explicit Signal2D(__gm__ int32_t* words, int rowStride = C)
      : words_(words), rowStride_(rowStride) {}
  Signal at(int row, int column) {
    return Signal(words_ + static_cast<int64_t>(row) * rowStride_ + column);
  }

 private:
  int32_t* words_;
  int rowStride_;
};

}  // namespace checked
}  // namespace comm
}  // namespace pto
