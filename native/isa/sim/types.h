// SPDX-License-Identifier: Apache-2.0
// Tiles of the tile ISA on sim, under its own names. As in the toolkit, accessors are not const.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "native/isa/checked/operands.h"
#include "native/isa/element_types.h"
#include "native/isa/limits.h"
#include "native/isa/shape.h"
#include "windlass/kernel.h"

namespace windlass {

// Bytes of on-core memory for tiles.
constexpr size_t kUnifiedBufferBytes = kSimLimits.tileBytes;

namespace detail {
// This thread's on-core memory, aligned to 64 bytes. It is allocated on first use.
unsigned char* unifiedBuffer() noexcept;

// Records a tile use on this thread that no target allows. The caller then skips the instruction.
void misuse(const TileMisuse& misuse) noexcept;
// Returns true if this thread recorded a misuse since the last call, and returns the first.
bool takeMisuse(TileMisuse* first) noexcept;

#ifdef NDEBUG
constexpr bool kChecksTiles = false;
#else
constexpr bool kChecksTiles = true;
#endif
// Returns `kept`, and records a misuse if it is false. Always true in builds without checks.
inline bool fits(bool kept, TileMisuse::What what) noexcept {
  if (!kChecksTiles || kept) return true;
  misuse({what, 0, 0});
  return false;
}

template <typename TileT>
checked::TileRef refOf(TileT& tile) noexcept {
  const auto offset = reinterpret_cast<unsigned char*>(tile.data()) - unifiedBuffer();
  const checked::Placement at = {0, static_cast<uint32_t>(offset), 0, false};
  constexpr DType kDType = DTypeOf<typename TileT::DType>::value;
  const int64_t rows = tile.GetValidRow();
  return {at, kDType, TileT::Rows, TileT::Cols, rows, tile.GetValidCol(), false, false};
}
}  // namespace detail

}  // namespace windlass

namespace pto {
inline namespace sim {

// A tile in on-core memory, at the offset that TASSIGN sets. The constructor takes DYNAMIC valid
// sizes; without it they are 0. Each thread has its own memory, so a tile that two threads share
// names two buffers.
template <TileType kType, typename Element, int kRows, int kCols,
          BLayout kLayout = BLayout::RowMajor, int kValidRow = kRows, int kValidCol = kCols>
class Tile {
  static_assert(kType == TileType::Vec && kLayout == BLayout::RowMajor,
                "sim has row-major Vec tiles");
  static_assert(kCols * sizeof(Element) % 32 == 0, "a row is a multiple of 32 bytes");
  static_assert(size_t{kRows} * kCols * sizeof(Element) <= windlass::kUnifiedBufferBytes,
                "a tile fits on-core memory");
  static_assert(kValidRow <= kRows && kValidCol <= kCols, "the valid part lies in the tile");

 public:
  using DType = Element;
  static constexpr int Rows = kRows;
  static constexpr int Cols = kCols;
  static constexpr int ValidRow = kValidRow;
  static constexpr int ValidCol = kValidCol;

  Tile() = default;
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<R == DYNAMIC && C == DYNAMIC, int> = 0>
  Tile(int64_t validRows, int64_t validCols) noexcept
      : validRows_(validRows), validCols_(validCols) {
    size();
  }
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<(R == DYNAMIC) != (C == DYNAMIC), int> = 0>
  explicit Tile(int64_t valid) noexcept {
    (kValidRow == DYNAMIC ? validRows_ : validCols_) = valid;
    size();
  }

  Element* data() noexcept {
    return reinterpret_cast<Element*>(windlass::detail::unifiedBuffer() + offset_);
  }
  unsigned GetValidRow() noexcept { return static_cast<unsigned>(validRows_); }
  unsigned GetValidCol() noexcept { return static_cast<unsigned>(validCols_); }

  void place(size_t offset) noexcept {
    constexpr size_t kMost =
        windlass::kUnifiedBufferBytes - size_t{kRows} * kCols * sizeof(Element);
    if (offset % 32 == 0 && offset <= kMost) {
      offset_ = offset;
    } else {
      windlass::detail::misuse({windlass::TileMisuse::kPlaced, static_cast<int64_t>(offset),
                                static_cast<int64_t>(kMost)});
    }
  }

 private:
  void size() noexcept {
    if (validRows_ >= 0 && validRows_ <= kRows && validCols_ >= 0 && validCols_ <= kCols) return;
    windlass::detail::misuse({windlass::TileMisuse::kSized, validRows_, validCols_});
    validRows_ = validCols_ = 0;
  }

  size_t offset_ = 0;
  int64_t validRows_ = kValidRow == DYNAMIC ? 0 : kValidRow;
  int64_t validCols_ = kValidCol == DYNAMIC ? 0 : kValidCol;
};

// Places the tile at `offset` bytes of on-core memory.
template <typename TileT>
inline void TASSIGN(TileT& tile, size_t offset) noexcept {
  tile.place(offset);
}
template <size_t kOffset, typename TileT>
inline void TASSIGN(TileT& tile) noexcept {
  static_assert(kOffset % 32 == 0, "a tile's place is a multiple of 32 bytes");
  tile.place(kOffset);
}

}  // namespace sim
}  // namespace pto
