// SPDX-License-Identifier: Apache-2.0
// What a rank that has a device tells the others on the host while they hand over an operation.
#pragma once

#include <atomic>
#include <cstdint>

namespace windlass {

struct OffloadLine {
  static constexpr uint64_t kMostBytes = 128;

  alignas(64) std::atomic<uint64_t> turn{0};
  std::atomic<uint64_t> taken{0};  // the last operation that has the devices of the rank's process
  alignas(64) unsigned char said[2][kMostBytes] = {};
};

}  // namespace windlass
