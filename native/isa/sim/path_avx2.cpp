// SPDX-License-Identifier: Apache-2.0
// The loops for AVX2 with F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include "native/isa/sim/paths.h"

#define WINDLASS_PATH_F16C 1
#define WINDLASS_PATH_WIDTH 32

#pragma GCC push_options
#pragma GCC target("avx2,f16c")

namespace windlass {
namespace {
#include "native/isa/sim/vector_loops.inl"

// Four registers a turn to a destination aligned to 32; the ends are unaligned and may overlap the
// body. Streaming stores never touch the ends.
template <bool streaming>
void copyBody(unsigned char* d, const unsigned char* s, size_t bytes) {
  for (; bytes >= 128; bytes -= 128, d += 128, s += 128) {
    for (size_t k = 0; k < 128; k += 32) {
      const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + k));
      auto* to = reinterpret_cast<__m256i*>(d + k);
      if (streaming) {
        _mm256_stream_si256(to, block);
      } else {
        _mm256_store_si256(to, block);
      }
    }
  }
  for (; bytes >= 32; bytes -= 32, d += 32, s += 32) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(d),
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s)));
  }
}

void copyRegister(unsigned char* d, const unsigned char* s) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(d),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s)));
}

void copyLoop(void* dst, const void* src, size_t bytes) {
  if (dst == src) return;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  if (bytes < 32) {
    __builtin_memcpy(dst, src, bytes);
    return;
  }
  copyRegister(d, s);
  if (bytes <= 256) {
    for (size_t at = 32; at + 32 <= bytes; at += 32) copyRegister(d + at, s + at);
    copyRegister(d + bytes - 32, s + bytes - 32);
    return;
  }
  copyRegister(d + bytes - 32, s + bytes - 32);
  const size_t skip = 32 - (reinterpret_cast<uintptr_t>(d) & 31);
  if (bytes >= kStreamingCopyBytes) {
    copyBody<true>(d + skip, s + skip, bytes - skip);
    _mm_sfence();
  } else {
    copyBody<false>(d + skip, s + skip, bytes - skip);
  }
}

constexpr VectorTable kTable = makeTable();
}  // namespace

const VectorTable& avx2Table() noexcept {
  return kTable;
}

}  // namespace windlass

#pragma GCC pop_options
#endif
