// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: dst = accumulator op src, and the division of an average.

template <ReduceOp op>
WINDLASS_INLINE float combine(float a, float b) {
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kProduct) return a * b;
  const uint32_t x = bitsOf(a);
  const uint32_t y = bitsOf(b);
  // Integer keys in the order of the values, with -0 below +0.
  const int32_t keyX = static_cast<int32_t>(x ^ ((0u - (x >> 31)) & 0x7fffffffu));
  const int32_t keyY = static_cast<int32_t>(y ^ ((0u - (y >> 31)) & 0x7fffffffu));
  const bool takeX = op == ReduceOp::kMax ? keyX > keyY : keyX < keyY;
  const uint32_t bits = takeX ? x : y;
  const bool nan = isNan(x) | isNan(y);
  return floatOf(nan ? 0x7fc00000u : bits);
}

template <ReduceOp op>
WINDLASS_INLINE double combine(double a, double b) {
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kProduct) return a * b;
  const uint64_t x = bitsOf(a);
  const uint64_t y = bitsOf(b);
  const uint64_t mask = 0x7fffffffffffffffu;
  const auto keyX = static_cast<int64_t>(x ^ ((0u - (x >> 63)) & mask));
  const auto keyY = static_cast<int64_t>(y ^ ((0u - (y >> 63)) & mask));
  const bool takeX = op == ReduceOp::kMax ? keyX > keyY : keyX < keyY;
  const bool nan = ((x & mask) > 0x7ff0000000000000u) | ((y & mask) > 0x7ff0000000000000u);
  const uint64_t bits = nan ? 0x7ff8000000000000u : takeX ? x : y;
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Combines integers. Signed T compares as signed. Sums and products wrap.
template <ReduceOp op, typename T>
WINDLASS_INLINE T combine(T a, T b) {
  if (op == ReduceOp::kSum) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  if (op == ReduceOp::kProduct) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  const bool takeA = op == ReduceOp::kMax ? a > b : a < b;
  return takeA ? a : b;
}

// Values of elements that are read as they are, or as bf16.
template <typename Value>
WINDLASS_INLINE Value asIs(Value value) {
  return value;
}
WINDLASS_INLINE float asBf16(uint16_t code) { return floatOf(static_cast<uint32_t>(code) << 16); }

// Folds elements of type Src, which accumulate in type E.
template <typename E, ReduceOp op, typename Src = E, auto read = asIs<typename E::Value>>
WINDLASS_LOOP void foldEach(void* dst, const void* accumulator, const void* src, size_t count) {
  using Value = typename E::Value;
  typename E::Any* d = static_cast<typename E::Any*>(dst);
  const typename E::Any* a = static_cast<const typename E::Any*>(accumulator);
  const typename Src::Any* s = static_cast<const typename Src::Any*>(src);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) d[i] = combine<op>(static_cast<Value>(a[i]), read(s[i]));
}

template <CastLoop toF32, size_t SrcBytes, ReduceOp op>
WINDLASS_LOOP void foldNarrow(void* dst, const void* accumulator, const void* src, size_t count) {
  auto* d = static_cast<unsigned char*>(dst);
  const auto* a = static_cast<const unsigned char*>(accumulator);
  inStages<toF32, SrcBytes>(src, count, [&](const uint32_t* stage, size_t at, size_t n) {
    foldEach<F32, op>(d + at * sizeof(float), a + at * sizeof(float), stage, n);
  });
}

template <typename F>
WINDLASS_LOOP void divideFloat(void* accumulator, uint32_t divisor, size_t count) {
  typename F::Any* a = static_cast<typename F::Any*>(accumulator);
  const auto by = static_cast<typename F::Value>(divisor);
  for (size_t i = 0; i < count; ++i) a[i] = a[i] / by;
}
