// SPDX-License-Identifier: Apache-2.0
// The AVX-512 loops, with f32 to bf16 by VCVTNEPS2BF16.
#if defined(__x86_64__)
#include <immintrin.h>

#include "native/isa/sim/vector_table.h"

// Ignores warnings about undefined registers inside the intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")

namespace windlass {
namespace {
#include "native/isa/sim/vector_rows.inl"

// VFPCLASSPS categories: quiet NaN, denormal, signalling NaN.
constexpr int kUnsafe = 0x01 | 0x20 | 0x80;

__m256i narrowByInteger(__m512i bits) {
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff));
  const __m512i code = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512 value = _mm512_castsi512_ps(bits);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(code, nan, _mm512_set1_epi32(0x7fc0)));
}

// The instruction flushes subnormals and keeps NaN payloads. Vectors with such values use integer
// arithmetic.
__m256i narrowBf16(__m512 value) {
  if (__builtin_expect(_mm512_fpclass_ps_mask(value, kUnsafe) != 0, 0)) {
    return narrowByInteger(_mm512_castps_si512(value));
  }
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
}

WINDLASS_INLINE void castF32ToBf16(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512 low = _mm512_loadu_ps(s + i * 4);
    const __m512 high = _mm512_loadu_ps(s + i * 4 + 64);
    const __mmask16 unsafe =
        _mm512_fpclass_ps_mask(low, kUnsafe) | _mm512_fpclass_ps_mask(high, kUnsafe);
    __m512i code;
    if (__builtin_expect(unsafe != 0, 0)) {
      code = _mm512_inserti64x4(_mm512_castsi256_si512(narrowByInteger(_mm512_castps_si512(low))),
                                narrowByInteger(_mm512_castps_si512(high)), 1);
    } else {
      code = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    }
    _mm512_storeu_si512(d + i * 2, code);
  }
  for (; i < count; i += 16) {
    const size_t left = count - i;
    const auto lanes = static_cast<__mmask16>(left < 16 ? (1u << left) - 1u : 0xffffu);
    const __m512 value = _mm512_maskz_loadu_ps(lanes, s + i * 4);
    _mm256_mask_storeu_epi16(d + i * 2, lanes, narrowBf16(value));
  }
}

VectorTable makeTable() {
  VectorTable table = avx512Table();
  setCast<castF32ToBf16, DType::kF32, DType::kBF16>(table);
  return table;
}

}  // namespace

const VectorTable& avx512Bf16Table() noexcept {
  static const VectorTable table = makeTable();
  return table;
}

}  // namespace windlass

#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
