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

// A chain of at most three casts. Equal dtypes need no cast: their elements keep every bit. The
// last cast writes the destination, past the caches if it streams.
class CastSteps {
 public:
  // The casts from -> to, or from -> wire -> to.
  CastSteps(const VectorTable& table, DType from, const DType* wire, DType to) noexcept
      : CastSteps(table, from) {
    if (wire != nullptr) add(*wire);
    add(to);
  }

  // The casts of a fold, which make NaNs canonical: from the accumulator to the dtype that was
  // folded, and on as above.
  static CastSteps ofFold(const VectorTable& table, DType folded, const DType* wire,
                          DType to) noexcept {
    CastSteps steps(table, accumulatorOf(folded));
    steps.add(folded);
    if (wire != nullptr) steps.add(*wire);
    steps.add(to);
    if (steps.identity() && isFloat(folded)) steps.append(folded);
    return steps;
  }

  bool identity() const noexcept { return count_ == 0; }
  uint32_t count() const noexcept { return count_; }
  // Returns the loop of the only cast, or nullptr if there is none.
  CastLoop only(bool streams) const noexcept { return identity() ? nullptr : last(streams); }
  // Returns the loop over rows, or nullptr if the table has none for these casts.
  CastRowsLoop rows() const noexcept {
    return count_ == 1 ? table_.castRows[chain_[0]][chain_[1]] : nullptr;
  }

  // dst and src do not overlap. If it streams, the caller issues SFENCE.
  void run(void* dst, const void* src, size_t count, bool streams = false) const noexcept {
    if (identity()) return copyOrStream(table_, dst, src, count * sizeOf(last_), streams);
    if (count_ == 1) return last(streams)(dst, src, count);
    runAll(last(streams), static_cast<unsigned char*>(dst), static_cast<const unsigned char*>(src),
           count);
  }

 private:
  static constexpr uint32_t kMost = 3;

  CastLoop last(bool streams) const noexcept {
    const auto& casts = streams ? table_.castStreaming : table_.cast;
    return casts[chain_[count_ - 1]][chain_[count_]];
  }

  CastSteps(const VectorTable& table, DType from) noexcept
      : table_(table), first_(from), last_(from), chain_{floatIndex(from)} {}

  void add(DType to) noexcept {
    if (to != last_) append(to);
  }
  void append(DType to) noexcept {
    last_ = to;
    chain_[++count_] = floatIndex(to);
  }

  void runAll(CastLoop finish, unsigned char* dst, const unsigned char* src,
              size_t count) const noexcept {
    constexpr size_t kBlock = 512;
    alignas(64) unsigned char block[kMost - 1][kBlock * sizeof(double)];
    while (count > 0) {
      const size_t n = count < kBlock ? count : kBlock;
      const unsigned char* from = src;
      for (uint32_t i = 0; i + 1 < count_; ++i) {
        table_.cast[chain_[i]][chain_[i + 1]](block[i], from, n);
        from = block[i];
      }
      finish(dst, from, n);
      src += n * sizeOf(first_);
      dst += n * sizeOf(last_);
      count -= n;
    }
  }

  const VectorTable& table_;
  const DType first_;
  DType last_;
  uint32_t count_ = 0;
  int chain_[kMost + 1];  // by floatIndex
};

}  // namespace windlass
