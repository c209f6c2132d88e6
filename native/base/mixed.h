// SPDX-License-Identifier: Apache-2.0
// A fingerprint of several words, which tells apart what differs by chance or by mistake.
#pragma once

#include <cstdint>

namespace windlass {

// The fingerprint, 0 at first, once `word` follows in it.
constexpr uint64_t mixed(uint64_t fingerprint, uint64_t word) {
  const uint64_t next = (fingerprint ^ word) * 0x9e3779b97f4a7c15u;
  return next ^ next >> 32;
}

}  // namespace windlass
