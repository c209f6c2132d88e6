// SPDX-License-Identifier: Apache-2.0
// Lists of views and of rows that a callable gives, on sim.
#pragma once

#include <cstdint>

#include "native/isa/sim/loops.h"
#include "windlass/kernel.h"

namespace windlass {

// The views at(0), at(1), ...; `at` is called while the result is in use.
template <typename At>
inline Views viewsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, StridedView* views) {
    for (uint32_t i = 0; i < n; ++i) views[i] = (*static_cast<const At*>(context))(first + i);
  };
  return {count, list, &at};
}

// The rows at the addresses at(0), at(1), ...; `at` is called while the result is in use.
template <typename At>
inline Rows rowsAt(uint32_t count, const At& at) noexcept {
  const auto list = [](const void* context, uint32_t first, uint32_t n, void** addresses) {
    for (uint32_t i = 0; i < n; ++i) {
      const void* address = (*static_cast<const At*>(context))(first + i);
      addresses[i] = const_cast<void*>(address);
    }
  };
  return {count, list, &at};
}

}  // namespace windlass
