// SPDX-License-Identifier: Apache-2.0
// Lists of any number of views or rows, which a callable produces.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// A list of any number of views. `list` writes `n` of them, from number `first` on. Their shapes
// and strides stay valid as long as the list.
struct Views {
  uint32_t count;
  void (*list)(const void* context, uint32_t first, uint32_t n, StridedView* views);
  const void* context;

  WL_CORE StridedView operator[](uint32_t i) const {
    StridedView view;
    list(context, i, 1, &view);
    return view;
  }
};

// The views at(0), at(1), ... `at` is called while the result is in use.
template <typename At>
WL_CORE inline Views viewsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, StridedView* views) {
    for (uint32_t i = 0; i < n; ++i) views[i] = (*static_cast<const At*>(context))(first + i);
  };
  return {count, list, &at};
}

// A list of contiguous rows of one length and dtype. `list` writes the addresses of the first
// elements of `n` rows, from number `first` on.
struct Rows {
  uint32_t count;
  void (*list)(const void* context, uint32_t first, uint32_t n, void** addresses);
  const void* context;

  WL_CORE void* operator[](uint32_t i) const {
    void* address;
    list(context, i, 1, &address);
    return address;
  }
};

// The rows at the addresses at(0), at(1), ... `at` is called while the result is in use.
template <typename At>
WL_CORE inline Rows rowsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, void** addresses) {
    for (uint32_t i = 0; i < n; ++i) {
      const void* address = (*static_cast<const At*>(context))(first + i);
      addresses[i] = const_cast<void*>(address);
    }
  };
  return {count, list, &at};
}

}  // namespace windlass
