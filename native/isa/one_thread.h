// SPDX-License-Identifier: Apache-2.0
// Who looks at signals, and counts moves, on all targets but those where a core has threads for it.
#pragma once

#include <cstdint>

namespace windlass {

// Threads of a core that look at signals, and set them, side by side.
struct CoreThreads {
  static constexpr uint32_t kCount = 1;
  // Whether the core goes on while they move.
  static constexpr bool kMoveApart = false;
};

}  // namespace windlass
