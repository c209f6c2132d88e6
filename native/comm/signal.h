// SPDX-License-Identifier: Apache-2.0
// Operation sequences. They move forward by one an operation, are never reset, and wrap; a writer
// never leads a reader by 2^30.
#pragma once

#include <cstdint>

namespace windlass {

constexpr bool reached(uint32_t seen, uint32_t want) {
  return static_cast<int32_t>(seen - want) >= 0;
}

}  // namespace windlass
