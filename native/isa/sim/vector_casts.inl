// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: casts between the six float dtypes. Loops that the compiler vectorises
// must not be unrolled: it would unroll loops of known count before it could vectorise them.

// A narrow float: `Mantissa` stored mantissa bits, exponent bias `Bias`. Overflow becomes `Top`,
// which is infinity if the type has one. Codes above Top are NaN; `Nan` is canonical.
template <typename Element, int BitsN, int Mantissa, int Bias, bool HasInf, uint32_t TopN,
          uint32_t NanN>
struct Narrow {
  using Code = Element;
  static constexpr uint32_t kSign = 1u << (BitsN - 1);
  static constexpr int kShift = 23 - Mantissa;
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - Bias) << 23;
  static constexpr uint32_t kMinNormal = static_cast<uint32_t>(128 - Bias) << 23;  // f32 bits
  // The f32 whose unit in the last place is this type's smallest subnormal.
  static constexpr uint32_t kMagic = static_cast<uint32_t>(127 + 1 - Bias - Mantissa + 23) << 23;
  static constexpr uint32_t kScale = static_cast<uint32_t>(127 + 127 - Bias) << 23;
  static constexpr bool kHasInf = HasInf;
  static constexpr uint32_t kTop = TopN;
  static constexpr uint32_t kNan = NanN;
  static constexpr int kToSign = 32 - BitsN;
};
using Half = Narrow<U16, 16, 10, 15, true, 0x7c00, 0x7e00>;
using E5M2 = Narrow<U8, 8, 2, 15, true, 0x7c, 0x7e>;
using E4M3 = Narrow<U8, 8, 3, 7, false, 0x7e, 0x7f>;

template <typename N>
WINDLASS_INLINE uint32_t narrow(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t even = (magnitude >> N::kShift) & 1u;
  const uint32_t rounded = magnitude + ((1u << (N::kShift - 1)) - 1u) + even;
  const uint32_t normal = (rounded - N::kRebias) >> N::kShift;
  // The sum rounds to a multiple of the smallest subnormal, ties to even.
  const uint32_t subnormal = bitsOf(floatOf(magnitude) + floatOf(N::kMagic)) - N::kMagic;
  // Uses a mask, because the compiler could turn a choice into a branch around the addition.
  const uint32_t small = 0u - ((magnitude - N::kMinNormal) >> 31);
  uint32_t code = normal ^ ((normal ^ subnormal) & small);
  code = static_cast<int32_t>(code) > static_cast<int32_t>(N::kTop) ? N::kTop : code;
  code |= (bits >> N::kToSign) & N::kSign;
  return static_cast<int32_t>(magnitude) > 0x7f800000 ? N::kNan : code;
}

// Reads the code's bits as an f32 whose exponent is too low by 127 - Bias, then scales it. This is
// exact for subnormals too.
template <typename N>
WINDLASS_INLINE uint32_t widen(uint32_t code) {
  const uint32_t magnitude = code & (N::kSign - 1u);
  uint32_t bits = bitsOf(floatOf(magnitude << N::kShift) * floatOf(N::kScale));
  if (N::kHasInf) bits |= (0u - static_cast<uint32_t>(magnitude == N::kTop)) & 0x7f800000u;
  bits |= (code & N::kSign) << N::kToSign;
  return static_cast<int32_t>(magnitude) > static_cast<int32_t>(N::kTop) ? 0x7fc00000u : bits;
}

WINDLASS_INLINE uint32_t narrowBf16(uint32_t bits) {
  const uint32_t code = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000 ? 0x7fc0u : code;
}

// Rounds to odd: truncates toward zero and sets the last bit if inexact. A later rounding to at
// most 22 bits then rounds as from the f64. A NaN becomes a quiet f32 NaN.
WINDLASS_INLINE uint32_t roundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint64_t back = bitsOf(static_cast<double>(nearest)) & 0x7fffffffffffffffu;
  const uint64_t exact = bitsOf(value) & 0x7fffffffffffffffu;
  const uint64_t difference = exact - back;
  const auto below = static_cast<uint32_t>(difference >> 63);  // rounded away from zero
  const auto sticky = static_cast<uint32_t>((difference | (0u - difference)) >> 63);
  return (bitsOf(nearest) - below) | sticky;
}

// Casts with a canonical NaN.
WINDLASS_INLINE uint32_t canonical32(uint32_t bits) {
  return static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000 ? 0x7fc00000u : bits;
}
WINDLASS_INLINE uint64_t canonical64(uint64_t bits) {
  const bool nan = static_cast<int64_t>(bits & 0x7fffffffffffffffu) > 0x7ff0000000000000;
  return nan ? 0x7ff8000000000000u : bits;
}
WINDLASS_INLINE uint32_t widenBf16(uint16_t code) {
  return canonical32(static_cast<uint32_t>(code) << 16);
}
WINDLASS_INLINE uint32_t narrowF64(double value) {
  return canonical32(bitsOf(static_cast<float>(value)));
}
WINDLASS_INLINE uint64_t widenF32(float value) {
  return canonical64(bitsOf(static_cast<double>(value)));
}

// Converts each element of type From to one of type To.
template <typename To, typename From, auto convert>
WINDLASS_INLINE void castEach(void* dst, const void* src, size_t count) {
  typename To::Any* __restrict d = static_cast<typename To::Any*>(dst);
  const typename From::Any* __restrict s = static_cast<const typename From::Any*>(src);
#pragma GCC unroll 1
  for (size_t i = 0; i < count; ++i) d[i] = static_cast<typename To::Value>(convert(s[i]));
}

template <typename N>
constexpr CastLoop castF32ToNarrow = castEach<typename N::Code, U32, narrow<N>>;
template <typename N>
constexpr CastLoop castNarrowToF32 = castEach<U32, typename N::Code, widen<N>>;
constexpr CastLoop castF32ToBf16 = castEach<U16, U32, narrowBf16>;
constexpr CastLoop castBf16ToF32 = castEach<U32, U16, widenBf16>;
constexpr CastLoop castF64ToF32 = castEach<U32, F64, narrowF64>;
constexpr CastLoop castF32ToF64 = castEach<U64, F32, widenF32>;
constexpr CastLoop castF64ToOddF32 = castEach<U32, F64, roundToOdd>;
constexpr CastLoop canonicalF32 = castEach<U32, U32, canonical32>;
constexpr CastLoop canonicalF64 = castEach<U64, U64, canonical64>;

#if WINDLASS_PATH_F16C && WINDLASS_PATH_WIDTH == 64

WINDLASS_INLINE void castF32ToF16(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const __m512i canonical = _mm512_set1_epi32(0x7fc00000);
  for (size_t i = 0; i < count; i += 16) {
    const size_t left = count - i;
    const auto lanes = static_cast<__mmask16>(left < 16 ? (1u << left) - 1u : 0xffffu);
    __m512 value = _mm512_maskz_loadu_ps(lanes, s + i * 4);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    value = _mm512_castsi512_ps(_mm512_mask_mov_epi32(_mm512_castps_si512(value), nan, canonical));
    const __m256i code = _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16(d + i * 2, lanes, code);
  }
}

WINDLASS_INLINE void castF16ToF32(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const __m512i canonical = _mm512_set1_epi32(0x7fc00000);
  for (size_t i = 0; i < count; i += 16) {
    const size_t left = count - i;
    const auto lanes = static_cast<__mmask16>(left < 16 ? (1u << left) - 1u : 0xffffu);
    const __m512 value = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, s + i * 2));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i bits = _mm512_mask_mov_epi32(_mm512_castps_si512(value), nan, canonical);
    _mm512_mask_storeu_epi32(d + i * 4, lanes, bits);
  }
}

#elif WINDLASS_PATH_F16C

WINDLASS_INLINE void castF32ToF16(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const __m256 canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = _mm256_loadu_ps(reinterpret_cast<const float*>(s + i * 4));
    const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
    const __m256 clean = _mm256_blendv_ps(value, canonical, nan);
    const __m128i code = _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i * 2), code);
  }
  castF32ToNarrow<Half>(d + i * 2, s + i * 4, count - i);
}

WINDLASS_INLINE void castF16ToF32(void* dst, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const __m256 canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i * 2));
    const __m256 value = _mm256_cvtph_ps(code);
    const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
    _mm256_storeu_ps(reinterpret_cast<float*>(d + i * 4), _mm256_blendv_ps(value, canonical, nan));
  }
  castNarrowToF32<Half>(d + i * 4, s + i * 2, count - i);
}

#else

constexpr CastLoop castF32ToF16 = castF32ToNarrow<Half>;
constexpr CastLoop castF16ToF32 = castNarrowToF32<Half>;

#endif

// Widens elements to f32 in a staging buffer, and calls use(stage, at, n) for each `n` elements
// from number `at` on.
template <CastLoop toF32, size_t SrcBytes, typename Use>
WINDLASS_INLINE void inStages(const void* src, size_t count, const Use& use) {
  const auto* s = static_cast<const unsigned char*>(src);
  alignas(64) uint32_t stage[kStage];
  for (size_t at = 0; at < count; at += kStage) {
    const size_t n = count - at < kStage ? count - at : kStage;
    castRun<toF32>(stage, s + at * SrcBytes, n);
    use(stage, at, n);
  }
}

// Casts in two steps through f32, a block at a time. The first step is exact or rounds to odd.
template <CastLoop toF32, CastLoop fromF32, size_t SrcBytes, size_t DstBytes>
WINDLASS_INLINE void castThroughF32(void* dst, const void* src, size_t count) {
  constexpr size_t kBlock = 64;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  alignas(64) uint32_t block[kBlock];
  size_t at = 0;
  for (; at + kBlock <= count; at += kBlock) {
    toF32(block, s + at * SrcBytes, kBlock);
    fromF32(d + at * DstBytes, block, kBlock);
  }
  toF32(block, s + at * SrcBytes, count - at);
  fromF32(d + at * DstBytes, block, count - at);
}
