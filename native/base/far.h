// SPDX-License-Identifier: Apache-2.0
// Boxes of ordinary memory in other processes that a transfer reads. They may be strided, as views
// are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "windlass/kernel.h"

namespace windlass {

// Box of a view, which is copied as runs of contiguous memory. The dimension with the largest
// stride is outermost. Where runs lie one after another, the copy thus keeps their order.
class FarBox {
 public:
  // Gaps that a run may include. The bytes of these gaps are copied too. kShort is for
  // process_vm_readv, in which one more run costs about as much as kMostGapBytes more bytes.
  enum class Gaps { kNone, kShort };

  // Extents are at least 1. Strides are in elements.
  FarBox(uint64_t address, uint32_t elementBytes, uint32_t ndim, const int64_t* extents,
         const int64_t* strides, Gaps gaps)
      : address_(address), elementBytes_(elementBytes), ndim_(ndim), runBytes_(elementBytes) {
    uint32_t order[kMaxDims];  // dimensions, largest stride first
    uint32_t count = 0;
    for (uint32_t d = 0; d < ndim; ++d) {
      copied_[d] = 1;
      if (extents[d] == 1) continue;
      uint32_t at = count++;
      for (; at > 0 && strides[order[at - 1]] < strides[d]; --at) order[at] = order[at - 1];
      order[at] = d;
    }
    uint64_t wanted = elementBytes;  // bytes of a run without its gaps
    for (; count > 0; --count) {
      const uint32_t d = order[count - 1];
      const auto extent = static_cast<uint64_t>(extents[d]);
      const int64_t step = strides[d] * elementBytes;
      const auto gap = static_cast<uint64_t>(step) - runBytes_;
      const uint64_t span = (extent - 1) * static_cast<uint64_t>(step) + runBytes_;
      const bool isOneRun = step > 0 && static_cast<uint64_t>(step) >= runBytes_ &&
                            (gap == 0 || (gaps == Gaps::kShort && gap <= kMostGapBytes &&
                                          span <= kMostSpread * wanted * extent));
      if (!isOneRun) break;
      copied_[d] = strides[d];
      runBytes_ = span;
      wanted *= extent;
    }
    bytes_ = runBytes_;
    outer_ = count;
    while (count-- > 0) {
      const uint32_t d = order[count];
      extents_[count] = static_cast<uint64_t>(extents[d]);
      steps_[count] = static_cast<uint64_t>(strides[d]) * elementBytes;
      copied_[d] = static_cast<int64_t>(bytes_ / elementBytes);
      bytes_ *= extents_[count];
    }
  }

  // Number of bytes of the copy.
  uint64_t bytes() const { return bytes_; }
  // Returns the strides of the copy, in elements.
  void copyStrides(int64_t* strides) const { std::copy_n(copied_, ndim_, strides); }

  // Calls visit(address, bytes) in order for each run in bytes [from, from + count) of the copy.
  template <class Visit>
  void forEachRun(uint64_t from, uint64_t count, Visit&& visit) const {
    uint64_t at[kMaxDims];
    uint64_t address = address_;
    uint64_t index = from / runBytes_;
    for (uint32_t d = outer_; d-- > 0; index /= extents_[d]) {
      at[d] = index % extents_[d];
      address += at[d] * steps_[d];
    }
    uint64_t skipped = from % runBytes_;
    while (count > 0) {
      const uint64_t length = std::min(runBytes_ - skipped, count);
      visit(address + skipped, length);
      skipped = 0;
      count -= length;
      for (uint32_t d = outer_; d-- > 0;) {
        address += steps_[d];
        if (++at[d] < extents_[d]) break;
        address -= at[d] * steps_[d];
        at[d] = 0;
      }
    }
  }

  // Runs at a constant step, both in the box and in the copy.
  struct Rows {
    uint64_t address;
    uint64_t at;  // offset in the copy
    uint64_t bytes, count;
    uint64_t step, copyStep;
  };
  // Calls visit(rows) for the whole box, with as many runs at a time as one dimension has.
  template <class Visit>
  void forEachRows(Visit&& visit) const {
    Rows rows = {address_, 0, runBytes_, 1, runBytes_, runBytes_};
    uint64_t copySteps[kMaxDims];
    uint32_t along = outer_;
    uint64_t copied = runBytes_;
    for (uint32_t d = outer_; d-- > 0; copied *= extents_[d]) {
      copySteps[d] = copied;
      if (along == outer_ || extents_[d] > extents_[along]) along = d;
    }
    if (outer_ > 0) {
      rows.count = extents_[along];
      rows.step = steps_[along];
      rows.copyStep = copySteps[along];
    }
    uint64_t at[kMaxDims] = {};
    for (;;) {
      visit(static_cast<const Rows&>(rows));
      uint32_t d = outer_;
      while (d-- > 0) {
        if (d == along) continue;
        rows.address += steps_[d];
        rows.at += copySteps[d];
        if (++at[d] < extents_[d]) break;
        rows.address -= at[d] * steps_[d];
        rows.at -= at[d] * copySteps[d];
        at[d] = 0;
      }
      if (d == ~uint32_t{0}) return;
    }
  }

  // Like forEachRun(), but visits views of bytes. Each view is contiguous in the copy.
  template <class Visit>
  void forEachPart(uint64_t from, uint64_t count, Visit&& visit) const {
    // The dimensions are those outside the runs, and then the bytes of a run. unit[d]: bytes of the
    // copy that one step in dimension d takes.
    const uint32_t ndim = outer_ + 1;
    int64_t shape[kMaxDims + 1];
    int64_t strides[kMaxDims + 1];
    uint64_t unit[kMaxDims + 1];
    for (uint32_t d = 0; d < outer_; ++d) {
      shape[d] = static_cast<int64_t>(extents_[d]);
      strides[d] = static_cast<int64_t>(steps_[d]);
    }
    shape[outer_] = static_cast<int64_t>(runBytes_);
    strides[outer_] = 1;
    uint64_t bytes = 1;
    for (uint32_t d = ndim; d-- > 0; bytes *= static_cast<uint64_t>(shape[d])) unit[d] = bytes;
    const uint32_t first = ndim > kMaxDims ? 1 : 0;
    while (count > 0) {
      // Finds the outermost dimension with a whole step left, and visits all such steps of it.
      uint32_t d = first;
      while (from % unit[d] != 0 || count < unit[d]) ++d;
      uint64_t address = address_;
      for (uint32_t e = 0; e < ndim; ++e) {
        const uint64_t at = from / unit[e] % static_cast<uint64_t>(shape[e]);
        address += at * static_cast<uint64_t>(strides[e]);
      }
      const auto extent = static_cast<uint64_t>(shape[d]);
      const uint64_t steps = std::min(extent - from / unit[d] % extent, count / unit[d]);
      shape[d] = static_cast<int64_t>(steps);
      visit(StridedView{reinterpret_cast<void*>(address), DType::kU8, ndim - d, shape + d,
                        strides + d});
      shape[d] = static_cast<int64_t>(extent);
      from += steps * unit[d];
      count -= steps * unit[d];
    }
  }

 private:
  static constexpr uint64_t kMostGapBytes = 2048;
  static constexpr uint64_t kMostSpread = 8;  // bytes of a run for each byte wanted

  uint64_t address_;  // address in the owner's process
  uint32_t elementBytes_;
  uint32_t ndim_;
  uint64_t runBytes_;
  uint64_t bytes_;
  uint32_t outer_;  // dimensions that runs don't span, largest stride first
  uint64_t extents_[kMaxDims];
  uint64_t steps_[kMaxDims];
  int64_t copied_[kMaxDims];
};

// Box that a reader describes to its owner, in words:
//
//   phase | bytes of an element << 32 | ndim << 48
//   address, extents[ndim], strides[ndim]
struct ServedBox {
  static constexpr uint64_t kHeadWords = 2;

  const uint64_t* words;

  static uint64_t head(uint64_t phase, uint64_t elementBytes, uint64_t ndim) {
    return phase | elementBytes << 32 | ndim << 48;
  }
  uint32_t phase() const { return static_cast<uint32_t>(words[0]); }
  uint64_t ndim() const { return words[0] >> 48; }
  uint64_t size() const { return kHeadWords + 2 * ndim(); }
  FarBox box() const {
    const auto* extents = reinterpret_cast<const int64_t*>(words + kHeadWords);
    return {words[1],
            static_cast<uint32_t>(words[0] >> 32 & 0xffff),
            static_cast<uint32_t>(ndim()),
            extents,
            extents + ndim(),
            FarBox::Gaps::kNone};
  }
};

// Data of a rank for a transfer in which any rank reads such boxes.
struct FarPlan {
  // For each rank, the boxes that it reads of this one, as words, in reading order.
  std::vector<std::vector<uint64_t>> served;
  // Room for one item. The boxes that it reads are copied to `scratch`, each to whole lines.
  std::vector<uint64_t> item;
  unsigned char* scratch = nullptr;
};

}  // namespace windlass
