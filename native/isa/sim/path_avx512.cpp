// SPDX-License-Identifier: Apache-2.0
// The loops for AVX-512 (F, BW, DQ, VL), whose F part has the f16 conversions. AVX512-FP16 has no
// use here: its arithmetic rounds each step to f16, and folds accumulate in f32.
#if defined(__x86_64__)
#include <immintrin.h>

#include "native/isa/sim/paths.h"

#define WINDLASS_PATH_F16C 1
#define WINDLASS_PATH_WIDTH 64

// The intrinsics' own undefined registers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")

namespace windlass {
namespace {
#include "native/isa/sim/vector_loops.inl"

// Four registers a turn to a destination aligned to 64; the ends are unaligned and may overlap the
// body. Streaming stores never touch the ends.
template <bool streaming>
void copyBody(unsigned char* d, const unsigned char* s, size_t bytes) {
  for (; bytes >= 256; bytes -= 256, d += 256, s += 256) {
    for (size_t k = 0; k < 256; k += 64) {
      const __m512i block = _mm512_loadu_si512(reinterpret_cast<const __m512i*>(s + k));
      auto* to = reinterpret_cast<__m512i*>(d + k);
      if (streaming) {
        _mm512_stream_si512(to, block);
      } else {
        _mm512_store_si512(to, block);
      }
    }
  }
  for (; bytes >= 64; bytes -= 64, d += 64, s += 64) {
    _mm512_store_si512(reinterpret_cast<__m512i*>(d),
                       _mm512_loadu_si512(reinterpret_cast<const __m512i*>(s)));
  }
}

void copyRegister(unsigned char* d, const unsigned char* s) {
  _mm512_storeu_si512(reinterpret_cast<__m512i*>(d),
                      _mm512_loadu_si512(reinterpret_cast<const __m512i*>(s)));
}

void copyLoop(void* dst, const void* src, size_t bytes) {
  if (dst == src) return;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  if (bytes < 64) {
    __builtin_memcpy(dst, src, bytes);
    return;
  }
  copyRegister(d, s);
  if (bytes <= 512) {
    for (size_t at = 64; at + 64 <= bytes; at += 64) copyRegister(d + at, s + at);
    copyRegister(d + bytes - 64, s + bytes - 64);
    return;
  }
  copyRegister(d + bytes - 64, s + bytes - 64);
  const size_t skip = 64 - (reinterpret_cast<uintptr_t>(d) & 63);
  if (bytes >= kStreamingCopyBytes) {
    copyBody<true>(d + skip, s + skip, bytes - skip);
    _mm_sfence();
  } else {
    copyBody<false>(d + skip, s + skip, bytes - skip);
  }
}

constexpr VectorTable kTable = makeTable();
}  // namespace

const VectorTable& avx512Table() noexcept {
  return kTable;
}

}  // namespace windlass

#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
