// SPDX-License-Identifier: Apache-2.0
// Amount of memory that this process may still allocate.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

// Free bytes and the limit that determines them. File cache that a cgroup can drop counts as free.
struct FreeMemory {
  uint64_t bytes;
  char limit[256];

  // Takes about 50 us.
  static FreeMemory look();
  // Fails with WL_RESOURCE. The format describes the refused request; the message adds the free
  // memory.
  Code refuse(wl_error_t* error, const char* format, ...) const
      __attribute__((format(printf, 3, 4)));
};

// Smaller requests do not check free memory.
constexpr uint64_t kLargeBytes = uint64_t{64} << 20;

}  // namespace windlass
