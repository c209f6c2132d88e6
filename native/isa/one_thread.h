// SPDX-License-Identifier: Apache-2.0
// What kernels take of a core that is one thread, on all targets but those whose cores are several.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// The threads of a core. Where they are several, all of them run a kernel, and see the same.
struct CoreThreads {
  static constexpr uint32_t kCount = 1;
};

// Runs `body`, which stores through plain pointers, on one of the core's threads; what it stored is
// there for the others once they are past this.
template <class Body>
WL_CORE_INLINE void onOneThread(const Body& body) {
  body();
}

}  // namespace windlass
