// SPDX-License-Identifier: Apache-2.0
// Copies of memory, at the speed of memory whatever places source and target have in their pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace windlass {

// Whether `rep movsb`, by which C libraries and kernels copy what is long, takes some 15 times as
// long there: on AMD's Zen 3 and 4 where, counted within a page, the target begins less than a line
// behind the source.
inline bool isSlowToCopy(const void* to, const void* from) noexcept {
  constexpr uint64_t kPageBytes = 4096;
  constexpr uint64_t kLineBytes = 64;
  const uint64_t behind =
      (reinterpret_cast<uint64_t>(to) - reinterpret_cast<uint64_t>(from)) % kPageBytes;
  return behind > 0 && behind < kLineBytes;
}

// memcpy(), past that.
inline void copyMemory(void* to, const void* from, uint64_t bytes) noexcept {
  // Shorter than what glibc takes `rep movsb` for, from 2112 bytes on there.
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

}  // namespace windlass
