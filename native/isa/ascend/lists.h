// SPDX-License-Identifier: Apache-2.0
// Lists of views and of rows that a callable gives.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// The views at(0), at(1), ..., of which there are `count`.
template <typename At>
struct ListedViews {
  uint32_t count;
  const At& at;

  WL_CORE StridedView operator[](uint32_t i) const { return at(i); }
};
template <typename At>
WL_CORE inline ListedViews<At> viewsAt(uint32_t count, const At& at) {
  return {count, at};
}

// Contiguous rows of one length and dtype at the addresses at(0), at(1), ...
template <typename At>
struct ListedRows {
  uint32_t count;
  const At& at;
};
template <typename At>
WL_CORE inline ListedRows<At> rowsAt(uint32_t count, const At& at) {
  return {count, at};
}

}  // namespace windlass
