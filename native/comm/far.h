// SPDX-License-Identifier: Apache-2.0
// What a transfer reads of ordinary memory in other processes: boxes, as strided as views are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "windlass/kernel.h"

namespace windlass {

// Part of a view. Its bytes in row-major order are a stream.
struct FarBox {
  uint64_t address;  // in its owner's process
  uint32_t elementBytes;
  uint32_t ndim;
  const int64_t* extents;  // each at least 1
  const int64_t* strides;  // in elements

  uint64_t bytes() const {
    uint64_t bytes = elementBytes;
    for (uint32_t d = 0; d < ndim; ++d) bytes *= static_cast<uint64_t>(extents[d]);
    return bytes;
  }

  // visit(address, bytes) for each contiguous run of [from, from + count) of the stream, in order.
  template <class Visit>
  void forEachRun(uint64_t from, uint64_t count, Visit&& visit) const {
    uint64_t runBytes = elementBytes;
    uint32_t outer = ndim;  // dimensions from here on are contiguous
    while (outer > 0 && (extents[outer - 1] == 1 ||
                         static_cast<uint64_t>(strides[outer - 1]) * elementBytes == runBytes)) {
      --outer;
      runBytes *= static_cast<uint64_t>(extents[outer]);
    }
    while (count > 0) {
      uint64_t index = from / runBytes;
      const uint64_t skipped = from % runBytes;
      uint64_t at = address + skipped;
      for (uint32_t d = outer; d-- > 0;) {
        const auto extent = static_cast<uint64_t>(extents[d]);
        at += index % extent * static_cast<uint64_t>(strides[d]) * elementBytes;
        index /= extent;
      }
      const uint64_t length = std::min(runBytes - skipped, count);
      visit(at, length);
      from += length;
      count -= length;
    }
  }
};

// A box as its reader tells its owner of it, in words:
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
    return {words[1], static_cast<uint32_t>(words[0] >> 32 & 0xffff),
            static_cast<uint32_t>(ndim()), extents, extents + ndim()};
  }
};

// What a copy of a box takes of FarPlan::scratch.
constexpr uint64_t farRoom(uint64_t bytes) {
  return wholeLines(bytes);
}

// What a rank needs to run a transfer in which any rank reads such boxes.
struct FarPlan {
  // What each rank reads of this one: boxes in words, in the order in which it reads them.
  std::vector<std::vector<uint64_t>> served;
  // Room for one item, with its boxes beside it.
  std::vector<uint64_t> item;
  unsigned char* scratch = nullptr;
};

}  // namespace windlass
