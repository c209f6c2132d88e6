// SPDX-License-Identifier: Apache-2.0
// Casts of a contiguous run of elements.
#pragma once

#include <cstddef>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {

// Size of a box in a level-one staging buffer, in bytes and in elements.
constexpr size_t kBoxBytes = 16384;
constexpr int64_t boxElements(size_t elementBytes) {
  return static_cast<int64_t>(kBoxBytes / elementBytes);
}

// The casts from -> to, or from -> wire -> to. Equal dtypes need no cast: their elements keep every
// bit.
class CastSteps {
 public:
  CastSteps(const VectorTable& table, DType from, const DType* wire, DType to) noexcept
      : fromBytes_(sizeOf(from)), toBytes_(sizeOf(to)) {
    const DType middle = wire != nullptr ? *wire : to;
    if (from != middle) last_ = step(table.cast, from, middle);
    if (middle != to) {
      first_ = last_;
      last_ = step(table.cast, middle, to);
    }
    if (first_ == nullptr && last_ != nullptr) rows_ = step(table.castRows, from, to);
  }

  bool identity() const noexcept { return last_ == nullptr; }
  // Returns the loop over rows, or nullptr if the table has none for these casts.
  CastRowsLoop rows() const noexcept { return rows_; }

  // dst and src do not overlap.
  void run(void* dst, const void* src, size_t count) const noexcept {
    if (last_ == nullptr) {
      copyBytes(dst, src, count * toBytes_);
    } else if (first_ == nullptr) {
      last_(dst, src, count);
    } else {
      runBoth(static_cast<unsigned char*>(dst), static_cast<const unsigned char*>(src), count);
    }
  }

 private:
  template <class Loop>
  static Loop step(const Loop (&loops)[kFloatCount][kFloatCount], DType from, DType to) noexcept {
    const int row = floatIndex(from);
    const int column = floatIndex(to);
    return row < 0 || column < 0 ? nullptr : loops[row][column];
  }

  void runBoth(unsigned char* dst, const unsigned char* src, size_t count) const noexcept {
    constexpr size_t kMiddle = 1024;
    alignas(64) unsigned char middle[kMiddle * sizeof(double)];
    while (count > 0) {
      const size_t n = count < kMiddle ? count : kMiddle;
      first_(middle, src, n);
      last_(dst, middle, n);
      src += n * fromBytes_;
      dst += n * toBytes_;
      count -= n;
    }
  }

  CastLoop first_ = nullptr;
  CastLoop last_ = nullptr;
  CastRowsLoop rows_ = nullptr;
  size_t fromBytes_;
  size_t toBytes_;
};

}  // namespace windlass
