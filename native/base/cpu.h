// SPDX-License-Identifier: Apache-2.0
// What host code asks of the CPU itself.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

namespace windlass {

// Between two looks at a word: gives the core's resources to its neighbour.
inline void cpuPause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// Between a seq_cst read-modify-write and a look at what others write: no later load passes an
// earlier store. On x86-64 the read-modify-write sees to that by itself. Elsewhere it orders such
// loads alone as are seq_cst too, and what is looked for is seldom.
inline void orderLooks() noexcept {
#if !defined(__x86_64__)
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// A clock that all cores read alike, in ticks of a steady but unknown rate.
inline int64_t cpuTicks() noexcept {
#if defined(__x86_64__)
  return static_cast<int64_t>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  int64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
#endif
}

namespace detail {

template <size_t N>
inline void copyPair(unsigned char* d, const unsigned char* s, size_t bytes) noexcept {
  // Two possibly overlapping loads of N bytes cover N to 2N bytes.
  struct Block {
    unsigned char byte[N];
  } head, tail;
  __builtin_memcpy(&head, s, N);
  __builtin_memcpy(&tail, s + bytes - N, N);
  __builtin_memcpy(d, &head, N);
  __builtin_memcpy(d + bytes - N, &tail, N);
}

}  // namespace detail

// The longest run that copyShort takes.
constexpr size_t kShortCopyBytes = 64;

// dst = src, at most kShortCopyBytes; the ranges do not overlap, or are equal.
[[gnu::always_inline]] inline void copyShort(void* dst, const void* src, size_t bytes) noexcept {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  if (bytes > 32) {
    detail::copyPair<32>(d, s, bytes);
  } else if (bytes >= 16) {
    detail::copyPair<16>(d, s, bytes);
  } else if (bytes >= 8) {
    detail::copyPair<8>(d, s, bytes);
  } else if (bytes >= 4) {
    detail::copyPair<4>(d, s, bytes);
  } else if (bytes >= 2) {
    detail::copyPair<2>(d, s, bytes);
  } else if (bytes == 1) {
    *d = *s;
  }
}

}  // namespace windlass
