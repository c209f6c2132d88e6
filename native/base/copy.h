// SPDX-License-Identifier: Apache-2.0
// Memory copies at full speed for every alignment of source and target within their pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "native/base/cpu.h"

namespace windlass {

// Returns true if `rep movsb` between these addresses takes about 15 times as long as elsewhere. C
// libraries and kernels use it for long copies. It is slow on AMD Zen 3 and 4 if, counted within a
// page, the target begins less than a line after the source.
inline bool isSlowToCopy(const void* to, const void* from) noexcept {
  constexpr uint64_t kPageBytes = 4096;
  constexpr uint64_t kLineBytes = 64;
  const uint64_t behind =
      (reinterpret_cast<uint64_t>(to) - reinterpret_cast<uint64_t>(from)) % kPageBytes;
  return behind > 0 && behind < kLineBytes;
}

// Like memcpy(), but avoids slow `rep movsb` copies.
inline void copyMemory(void* to, const void* from, uint64_t bytes) noexcept {
  // Below the 2112 bytes from which glibc uses `rep movsb` on those CPUs.
  constexpr uint64_t kPiece = 2048;
  if (bytes <= kPiece || !isSlowToCopy(to, from)) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  while (bytes > 0) {
    const uint64_t count = std::min(bytes, kPiece);
    std::memcpy(d, s, count);
    d += count;
    s += count;
    bytes -= count;
  }
}

// Like copyMemory(), but bypasses the caches if the CPU supports it.
inline void streamMemory(void* to, const void* from, uint64_t bytes) noexcept {
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  const uint64_t skip = -reinterpret_cast<uint64_t>(d) % kStreamedBytes;
  uint64_t at = std::min(skip, bytes);
  std::memcpy(d, s, at);
  for (; bytes - at >= kStreamedBytes; at += kStreamedBytes) streamLine(d + at, s + at);
  std::memcpy(d + at, s + at, bytes - at);
  orderStreamed();
}

}  // namespace windlass
