// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: dst = accumulator op src, and the division of an average.

// Combines two values. Signed T compares as signed. Integer sums and products wrap.
template <ReduceOp op, typename T>
WINDLASS_INLINE T combine(T a, T b) {
  constexpr bool kIsFloat = std::is_floating_point_v<T>;
  // Integers are computed in 64 bits.
  using Wide = std::conditional_t<kIsFloat, T, uint64_t>;
  if constexpr (op == ReduceOp::kSum) {
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else if constexpr (op == ReduceOp::kProduct) {
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else if constexpr (op == ReduceOp::kAnd) {
    return a & b;
  } else if constexpr (op == ReduceOp::kOr) {
    return a | b;
  } else if constexpr (op == ReduceOp::kXor) {
    return a ^ b;
  } else if constexpr (!kIsFloat) {
    return (op == ReduceOp::kMax ? a > b : a < b) ? a : b;
  } else {
    using Bits = decltype(bitsOf(a));
    using Key = std::make_signed_t<Bits>;
    constexpr int kSign = 8 * sizeof(T) - 1;
    constexpr Bits kMagnitude = ~Bits{0} >> 1;
    constexpr Bits kNan = sizeof(T) == 8 ? static_cast<Bits>(0x7ff8000000000000u) : 0x7fc00000u;
    const Bits x = bitsOf(a);
    const Bits y = bitsOf(b);
    // Integer keys in the order of the values, with -0 below +0.
    const auto keyX = static_cast<Key>(x ^ ((0 - (x >> kSign)) & kMagnitude));
    const auto keyY = static_cast<Key>(y ^ ((0 - (y >> kSign)) & kMagnitude));
    const bool takeX = op == ReduceOp::kMax ? keyX > keyY : keyX < keyY;
    const Bits taken = takeX ? x : y;
    const bool nan = isNan(x) | isNan(y);
    return bitCast<T>(nan ? kNan : taken);
  }
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
