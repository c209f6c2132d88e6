// SPDX-License-Identifier: Apache-2.0
// CPU instructions for host code.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace windlass {

// Pauses between two polls of a word and gives the core's resources to its sibling thread.
inline void cpuPause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// Called between two looks at a signal. `sharesCore` is true if the thread that writes the signal
// may need this CPU core.
inline void relax(bool sharesCore) noexcept {
  if (sharesCore) {
    sched_yield();
  } else {
    cpuPause();
  }
}

// Call between a seq_cst read-modify-write and loads of words that other threads write. It keeps
// the loads from passing earlier stores. On x86-64, the read-modify-write itself ensures this. On
// other CPUs, it only orders loads that are seq_cst too, and most of those loads are not.
inline void orderLooks() noexcept {
#if !defined(__x86_64__)
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Ticks of a clock that is equal on all cores. Its rate is steady but unknown.
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

constexpr size_t kStreamedBytes = 64;

// Stores kStreamedBytes at a line boundary and bypasses the caches if the CPU supports it. Call
// orderStreamed() before later stores that must stay in order.
inline void streamLine(void* to, const void* from) noexcept {
#if defined(__x86_64__)
  constexpr size_t kBlocks = kStreamedBytes / sizeof(__m128i);
  __m128i blocks[kBlocks];
  __builtin_memcpy(blocks, from, kStreamedBytes);
  for (size_t k = 0; k < kBlocks; ++k) _mm_stream_si128(static_cast<__m128i*>(to) + k, blocks[k]);
#else
  __builtin_memcpy(to, from, kStreamedBytes);
#endif
}

inline void orderStreamed() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
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
