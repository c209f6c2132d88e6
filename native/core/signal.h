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

// Returns the count whose low 32 bits are `seen`: the largest that is at most 2^30 above `near`.
constexpr uint64_t widened(uint32_t seen, uint64_t near) {
  const uint32_t ahead = seen - static_cast<uint32_t>(near);
  const uint32_t back = 0 - ahead;
  return ahead <= uint32_t{1} << 30 || back > near ? near + ahead : near - back;
}

// Loads with acquire. The load synchronizes with the writer's release of the value seen.
inline uint32_t lookAt(const uint32_t* signal) {
  return __atomic_load_n(signal, __ATOMIC_ACQUIRE);
}

}  // namespace windlass
