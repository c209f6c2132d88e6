// SPDX-License-Identifier: Apache-2.0
// Types of the tile vocabulary on sim. Numbers of enums are ABI: append only.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "native/isa/element_types.h"
#include "native/isa/limits.h"
#include "windlass/kernel.h"

namespace windlass {

constexpr int64_t DYNAMIC = -1;
constexpr int kGlobalDims = 5;

enum class Layout { ND = 0 };
enum class Loc { Vec = 0 };
enum class BLayout { RowMajor = 0 };
enum class AtomicType { None = 0, Add = 1 };
enum class RoundMode { NONE = 0, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD };
enum class SaturationMode { ON = 0, OFF = 1 };

namespace detail {

// Five int64 values, those given as DYNAMIC taken from the constructor in order.
template <int64_t... N>
class Extents {
  static_assert(sizeof...(N) == kGlobalDims, "five dimensions");

 public:
  static constexpr int kDynamic = ((N == DYNAMIC ? 1 : 0) + ...);
  static constexpr int64_t kGiven[] = {N...};

  template <typename... V>
  explicit constexpr Extents(V... values) noexcept {
    static_assert(sizeof...(V) == kDynamic, "one value for each DYNAMIC dimension");
    const int64_t given[sizeof...(V) + 1] = {static_cast<int64_t>(values)..., 0};
    int next = 0;
    for (int d = 0; d < kGlobalDims; ++d) {
      if (value[d] == DYNAMIC) value[d] = given[next++];
    }
  }

  int64_t value[kGlobalDims] = {N...};
};

}  // namespace detail

template <int64_t N0 = 1, int64_t N1 = 1, int64_t N2 = 1, int64_t N3 = 1, int64_t N4 = 1>
struct Shape : detail::Extents<N0, N1, N2, N3, N4> {
  using detail::Extents<N0, N1, N2, N3, N4>::Extents;
};

// In elements.
template <int64_t N0 = 1, int64_t N1 = 1, int64_t N2 = 1, int64_t N3 = 1, int64_t N4 = 1>
struct Stride : detail::Extents<N0, N1, N2, N3, N4> {
  using detail::Extents<N0, N1, N2, N3, N4>::Extents;
};

// A 5-D view of memory: dimension 3 counts rows, dimension 4 columns.
template <typename T, typename ShapeT, typename StrideT, Layout layout = Layout::ND>
class GlobalTensor {
 public:
  using Element = T;
  static constexpr Layout kLayout = layout;
  // Whether the type says that the elements stand side by side in one row.
  static constexpr bool kOneRow = ShapeT::kGiven[0] == 1 && ShapeT::kGiven[1] == 1 &&
                                  ShapeT::kGiven[2] == 1 && ShapeT::kGiven[3] == 1 &&
                                  StrideT::kGiven[4] == 1;

  GlobalTensor(T* ptr, const ShapeT& shape, const StrideT& stride) noexcept
      : ptr_(ptr), shape_(shape), stride_(stride) {}

  T* data() const noexcept { return ptr_; }
  int64_t GetShape(int d) const noexcept { return shape_.value[d]; }
  int64_t GetStride(int d) const noexcept { return stride_.value[d]; }
  const int64_t* shape() const noexcept { return shape_.value; }
  const int64_t* stride() const noexcept { return stride_.value; }

 private:
  T* ptr_;
  ShapeT shape_;
  StrideT stride_;
};

// Bytes of on-core memory that tiles are placed in.
constexpr size_t kUnifiedBufferBytes = kLimits.tileBytes;

namespace detail {
// This thread's on-core memory, aligned to 64 bytes; made on first use.
unsigned char* unifiedBuffer() noexcept;
}  // namespace detail

// A tile of on-core memory. ValidRows and ValidCols of -1 are given to the constructor. Memory is
// this thread's, so a tile that two threads hold names two buffers.
template <Loc loc, typename T, int64_t Rows, int64_t Cols, BLayout layout = BLayout::RowMajor,
          int64_t ValidRows = Rows, int64_t ValidCols = Cols>
class Tile {
  static_assert(layout == BLayout::RowMajor && (Cols * int64_t{sizeof(T)}) % 32 == 0,
                "a row is a multiple of 32 bytes");
  static_assert(static_cast<size_t>(Rows * Cols) * sizeof(T) <= kUnifiedBufferBytes,
                "a tile fits on-core memory");
  static_assert(ValidRows <= Rows && ValidCols <= Cols, "the valid part lies in the tile");

 public:
  using Element = T;
  static constexpr int64_t kRows = Rows;
  static constexpr int64_t kCols = Cols;
  static constexpr bool kDynamic = ValidRows == DYNAMIC || ValidCols == DYNAMIC;

  constexpr Tile() noexcept = default;
  constexpr Tile(int64_t validRows, int64_t validCols) noexcept { setValid(validRows, validCols); }

  T* data() const noexcept { return reinterpret_cast<T*>(detail::unifiedBuffer() + offset_); }
  int64_t GetValidRow() const noexcept { return validRows_; }
  int64_t GetValidCol() const noexcept { return validCols_; }

  // Fixed dimensions stay as they are.
  constexpr void setValid(int64_t rows, int64_t cols) noexcept {
    if (ValidRows == DYNAMIC) validRows_ = rows;
    if (ValidCols == DYNAMIC) validCols_ = cols;
    assert(validRows_ >= 0 && validRows_ <= Rows && validCols_ >= 0 && validCols_ <= Cols);
  }
  void assign(size_t offset) noexcept {
    assert(offset % 32 == 0);
    assert(offset + static_cast<size_t>(Rows * Cols) * sizeof(T) <= kUnifiedBufferBytes);
    offset_ = offset;
  }

 private:
  size_t offset_ = 0;
  int64_t validRows_ = ValidRows == DYNAMIC ? 0 : ValidRows;
  int64_t validCols_ = ValidCols == DYNAMIC ? 0 : ValidCols;
};

// Places the tile at `offset` bytes of on-core memory.
template <typename TileT>
inline void TASSIGN(TileT& tile, size_t offset) noexcept {
  tile.assign(offset);
}

}  // namespace windlass
