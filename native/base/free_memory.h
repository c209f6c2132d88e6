// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

// Bytes of it, and which limit says so. Of a cgroup, what it keeps of files and can drop counts as
// free.
struct FreeMemory {
  uint64_t bytes;
  char limit[256];

  // Takes some 50 us.
  static FreeMemory look();
  // WL_RESOURCE of more than there is: what can't be had, behind which the message says what is
  // free.
  Code refuse(wl_error_t* error, const char* format, ...) const
      __attribute__((format(printf, 3, 4)));
};

// Of less it isn't worth a look.
constexpr uint64_t kLargeBytes = uint64_t{64} << 20;

}  // namespace windlass
