// SPDX-License-Identifier: Apache-2.0
#include "native/core/call.h"

#include <algorithm>

namespace windlass {
namespace {

// Elements from the first one to the end of the last part.
uint64_t endOf(const int64_t* counts, const int64_t* offsets, uint32_t ranks) {
  int64_t end = 0;
  int64_t next = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    next = (offsets == nullptr ? next : offsets[rank]) + counts[rank];
    if (counts[rank] > 0) end = std::max(end, next);
  }
  return static_cast<uint64_t>(end);
}

}  // namespace

uint64_t Call::inExtent(uint32_t ranks) const {
  if (parts == nullptr || parts->inCounts == nullptr) return inBytes;
  return endOf(parts->inCounts, parts->inOffsets, ranks) *
         sizeOf(static_cast<DType>(descriptor.dtype()));
}

uint64_t Call::outExtent(uint32_t ranks) const {
  if (parts == nullptr || parts->outCounts == nullptr) return outBytes;
  return endOf(parts->outCounts, parts->outOffsets, ranks) *
         sizeOf(static_cast<DType>(descriptor.dtype()));
}

}  // namespace windlass
