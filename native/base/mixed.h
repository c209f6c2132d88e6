// SPDX-License-Identifier: Apache-2.0
// A fingerprint of several words. It detects accidental differences only.
#pragma once

#include <cstdint>

namespace windlass {

// Returns the fingerprint after appending `word`. The empty fingerprint is 0.
constexpr uint64_t mixed(uint64_t fingerprint, uint64_t word) {
  const uint64_t next = (fingerprint ^ word) * 0x9e3779b97f4a7c15u;
  return next ^ next >> 32;
}

}  // namespace windlass
