// SPDX-License-Identifier: Apache-2.0
// Threads of a core for signals and move counts, on targets where one thread does both.
#pragma once

#include <cstdint>

namespace windlass {

// The threads of a core that check and set signals in parallel.
struct CoreThreads {
  static constexpr uint32_t kCount = 1;
  // True if the core continues while its moves are in progress.
  static constexpr bool kMoveApart = false;
};

}  // namespace windlass
