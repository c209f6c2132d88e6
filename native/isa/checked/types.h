// SPDX-License-Identifier: Apache-2.0
// Tiles of the tile ISA under its own names.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/checked/core.h"
#include "native/isa/element_types.h"
#include "native/isa/shape.h"
#include "native/isa/signals.h"

#define __gm__

namespace pto {
inline namespace checked {

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
}  // namespace pto
