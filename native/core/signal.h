// SPDX-License-Identifier: Apache-2.0
// Sequences of operations and of users' signals. They move forward, are never reset, and wrap. A
// writer is never ahead of a reader by 2^30.
#pragma once

#include <cstdint>

namespace windlass {

constexpr bool reached(uint32_t seen, uint32_t want) {
  return static_cast<int32_t>(seen - want) >= 0;
}

// Returns true if a signal at `seen` may be set to `value`.
constexpr bool movesForward(uint32_t seen, uint32_t value) {
  return value - seen < uint32_t{1} << 30;
}

// Loads with acquire. The load synchronizes with the writer's release of the value seen.
inline uint32_t lookAt(const uint32_t* signal) {
  return __atomic_load_n(signal, __ATOMIC_ACQUIRE);
}

}  // namespace windlass
