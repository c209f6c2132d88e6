// SPDX-License-Identifier: Apache-2.0
// Lists of any number of views or rows, which a callable produces.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// A list of any number of items. `list` writes `n` of them, from number `first` on.
template <typename Item>
struct ItemList {
  uint32_t count;
  void (*list)(const void* context, uint32_t first, uint32_t n, Item* items);
  const void* context;

  WL_CORE Item operator[](uint32_t i) const {
    Item item;
    list(context, i, 1, &item);
    return item;
  }
};
// Views whose shapes and strides stay valid as long as the list.
using Views = ItemList<StridedView>;
// Addresses of the first elements of contiguous rows of one length and dtype.
using Rows = ItemList<void*>;
// Factors of rows.
using Weights = ItemList<double>;

// The views at(0), at(1), ... `at` is called while the result is in use.
template <typename At>
WL_CORE inline Views viewsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, StridedView* views) {
    for (uint32_t i = 0; i < n; ++i) views[i] = (*static_cast<const At*>(context))(first + i);
  };
  return {count, list, &at};
}

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

// The factors at(0), at(1), ... `at` is called while the result is in use.
template <typename At>
WL_CORE inline Weights weightsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, double* weights) {
    for (uint32_t i = 0; i < n; ++i) weights[i] = (*static_cast<const At*>(context))(first + i);
  };
  return {count, list, &at};
}

}  // namespace windlass
