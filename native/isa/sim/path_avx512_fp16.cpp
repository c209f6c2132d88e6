// SPDX-License-Identifier: Apache-2.0
// The AVX-512 loops with bf16, and casts between f64 and f16 by the conversions of AVX512-FP16,
// which round once and keep subnormals. Its arithmetic is not used: it rounds each step to f16, but
// folds accumulate in f32.
#if defined(__x86_64__)
#include <immintrin.h>

#include "native/isa/sim/vector_table.h"

// Ignores warnings about undefined registers inside the intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512fp16,prefer-vector-width=512")

namespace windlass {
namespace {
#include "native/isa/sim/vector_rows.inl"

__mmask8 lanesOf(size_t left) {
  return static_cast<__mmask8>(left < 8 ? (1u << left) - 1u : 0xffu);
}

WINDLASS_INLINE void castF64ToF16(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  for (size_t i = 0; i < count; i += 8) {
    const __mmask8 lanes = lanesOf(count - i);
    const __m512d value = _mm512_maskz_loadu_pd(lanes, s + i * 8);
    const __mmask8 nan = _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q);
    const __m128i code = _mm_castph_si128(
        _mm512_cvt_roundpd_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_mask_storeu_epi16(d + i * 2, lanes, _mm_mask_mov_epi16(code, nan, _mm_set1_epi16(0x7e00)));
  }
}

WINDLASS_INLINE void castF16ToF64(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const __m512i canonical = _mm512_set1_epi64(0x7ff8000000000000);
  for (size_t i = 0; i < count; i += 8) {
    const __mmask8 lanes = lanesOf(count - i);
    const __m128i code = _mm_maskz_loadu_epi16(lanes, s + i * 2);
    const __m512d value = _mm512_cvtph_pd(_mm_castsi128_ph(code));
    const __mmask8 nan = _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q);
    _mm512_mask_storeu_epi64(d + i * 8, lanes,
                             _mm512_mask_mov_epi64(_mm512_castpd_si512(value), nan, canonical));
  }
}

VectorTable makeTable() {
  VectorTable table = avx512Bf16Table();
  setRun<castF64ToF16, DType::kF64, DType::kF16>(table);
  setRun<castF16ToF64, DType::kF16, DType::kF64>(table);
  return table;
}

}  // namespace

const VectorTable& avx512Fp16Table() noexcept {
  static const VectorTable table = makeTable();
  return table;
}

}  // namespace windlass

#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
