// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: weighted elements, and blocks of elements that are divided by their own
// scale.

// Returns weight * src, plus the accumulator unless `first`. Each step is rounded.
template <bool first, typename Value>
WINDLASS_INLINE Value weighed(Value accumulator, Value weight, Value src) {
  const Value product = weight * src;
  return first ? product : accumulator + product;
}

template <typename F, bool first, typename Src = F, auto read = asIs<typename F::Value>>
WINDLASS_LOOP void weighFloat(void* accumulator, const void* src, double weight, size_t count) {
  using Value = typename F::Value;
  typename F::Any* a = static_cast<typename F::Any*>(accumulator);
  const typename Src::Any* s = static_cast<const typename Src::Any*>(src);
  const auto w = static_cast<Value>(weight);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    a[i] = weighed<first>(static_cast<Value>(a[i]), w, read(s[i]));
  }
}

template <CastLoop toF32, size_t SrcBytes, bool first>
WINDLASS_LOOP void weighNarrow(void* accumulator, const void* src, double weight, size_t count) {
  auto* a = static_cast<unsigned char*>(accumulator);
  inStages<toF32, SrcBytes>(src, count, [&](const uint32_t* stage, size_t at, size_t n) {
    weighFloat<F32, first>(a + at * sizeof(float), stage, weight, n);
  });
}

// Writes src / scale as f8e4m3, by the reciprocal of the scale. Returns the scale: the largest
// magnitude in the block, without NaNs and at least 1e-4, over the largest f8e4m3.
template <CastLoop toF32>
WINDLASS_LOOP float quantiseBlock(void* dst, const void* src, size_t count) {
  constexpr float kLeast = 1e-4f;
  constexpr float kMost = 448.0f;
  alignas(64) float values[kQuantBlock];
  toF32(values, src, count);
  // Bits of magnitudes are in the order of the magnitudes.
  uint32_t largest = bitsOf(kLeast);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = bitsOf(values[i]) & 0x7fffffffu;
    const uint32_t counted = isNan(magnitude) ? 0 : magnitude;
    largest = counted > largest ? counted : largest;
  }
  const float scale = floatOf(largest) / kMost;
  const float reciprocal = 1.0f / scale;
  for (size_t i = 0; i < count; ++i) values[i] = values[i] * reciprocal;
  castRun<castF32ToNarrow<E4M3>>(dst, values, count);
  return scale;
}

WINDLASS_INLINE void copyF32(void* dst, const void* src, size_t count) {
  __builtin_memcpy(dst, src, count * sizeof(float));
}

template <bool first>
constexpr void fillWeighs(WeighLoop* row) {
  row[0] = weighFloat<F64, first>;
  row[1] = weighFloat<F32, first>;
  row[2] = weighNarrow<castF16ToF32, 2, first>;
  row[3] = weighFloat<F32, first, U16, asBf16>;
  row[4] = weighNarrow<castNarrowToF32<E5M2>, 1, first>;
  row[5] = weighNarrow<castNarrowToF32<E4M3>, 1, first>;
}
