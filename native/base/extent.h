// SPDX-License-Identifier: Apache-2.0
// Sizes of strided views, and the bytes that they share.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// Computes the bytes from the start of the first element to the end of the last one; 0 for an empty
// view. Returns false if they exceed 63 bits. Shape and strides are not negative.
inline bool extentOf(uint32_t ndim, const int64_t* shape, const int64_t* strides,
                    uint64_t elementBytes, int64_t* bytes) {
  int64_t last = 0;
  for (uint32_t d = 0; d < ndim; ++d) {
    if (shape[d] == 0) {
      *bytes = 0;
      return true;
    }
    int64_t step = 0;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return false;
    }
  }
  return !__builtin_add_overflow(last, int64_t{1}, &last) &&
         !__builtin_mul_overflow(last, static_cast<int64_t>(elementBytes), bytes);
}

inline uint64_t elementsOf(const StridedView& view) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < view.ndim; ++d) elements *= static_cast<uint64_t>(view.shape[d]);
  return elements;
}
// Bytes of the view's elements, without the gaps between them.
inline uint64_t bytesOf(const StridedView& view) { return elementsOf(view) * sizeOf(view.dtype); }

// True if an element of `a` and one of `b` share a byte. Strides are not negative. Also returns
// true for views of 2^61 bytes or more, and if the search exceeds its step limit.
bool shareBytes(const StridedView& a, const StridedView& b);

}  // namespace windlass
