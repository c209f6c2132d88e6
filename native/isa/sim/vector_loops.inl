// SPDX-License-Identifier: Apache-2.0
// The loops of one vector path. Each path_*.cpp includes this once, under its own target pragma and
// in its own namespace. Everything here is internal to that file. It names no template of the
// standard library, so that the linker cannot share a function that was built for a wider CPU.
//
// Before inclusion, define WINDLASS_PATH_WIDTH, the bytes of a vector register, and include
// vector_table.h. If WINDLASS_PATH_F16C is 1, also include <immintrin.h>.

// Elements in memory of any alignment and any declared type. Name the type of pointers to Any: auto
// would drop its attributes.
#define WINDLASS_ANY(name, type)                               \
  struct name {                                                \
    using Value = type;                                        \
    typedef type Any __attribute__((may_alias, aligned(1)));   \
  }
WINDLASS_ANY(F32, float);
WINDLASS_ANY(F64, double);
WINDLASS_ANY(U8, uint8_t);
WINDLASS_ANY(I8, int8_t);
WINDLASS_ANY(U16, uint16_t);
WINDLASS_ANY(I16, int16_t);
WINDLASS_ANY(U32, uint32_t);
WINDLASS_ANY(I32, int32_t);
WINDLASS_ANY(U64, uint64_t);
WINDLASS_ANY(I64, int64_t);
#undef WINDLASS_ANY

#include "native/isa/sim/vector_rows.inl"

// Elements in the staging buffer of a cast through f32.
constexpr size_t kStage = 512;

template <typename To, typename From>
WINDLASS_INLINE To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
WINDLASS_INLINE uint32_t bitsOf(float value) { return bitCast<uint32_t>(value); }
WINDLASS_INLINE uint64_t bitsOf(double value) { return bitCast<uint64_t>(value); }
WINDLASS_INLINE float floatOf(uint32_t bits) { return bitCast<float>(bits); }

WINDLASS_INLINE bool isNan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
WINDLASS_INLINE bool isNan(uint64_t bits) {
  return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

#include "native/isa/sim/vector_casts.inl"
#include "native/isa/sim/vector_folds.inl"
#include "native/isa/sim/vector_scaled.inl"

// The including file defines these functions.
static void copyLoop(void* dst, const void* src, size_t bytes);
static void streamLoop(void* dst, const void* src, size_t bytes);

template <ReduceOp op>
constexpr void fillFolds(VectorTable& table) {
  FoldLoop* row = table.fold[static_cast<int>(op)];
  if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
    row[static_cast<int>(DType::kBool)] = foldEach<U8, op>;
  }
  row[static_cast<int>(DType::kU8)] = foldEach<U8, op>;
  row[static_cast<int>(DType::kI8)] = foldEach<I8, op>;
  row[static_cast<int>(DType::kU16)] = foldEach<U16, op>;
  row[static_cast<int>(DType::kI16)] = foldEach<I16, op>;
  row[static_cast<int>(DType::kU32)] = foldEach<U32, op>;
  row[static_cast<int>(DType::kI32)] = foldEach<I32, op>;
  row[static_cast<int>(DType::kU64)] = foldEach<U64, op>;
  row[static_cast<int>(DType::kI64)] = foldEach<I64, op>;
  if constexpr (!isBitwise(op)) {
    row[static_cast<int>(DType::kF64)] = foldEach<F64, op>;
    row[static_cast<int>(DType::kF32)] = foldEach<F32, op>;
    row[static_cast<int>(DType::kF16)] = foldNarrow<castF16ToF32, 2, op>;
    row[static_cast<int>(DType::kBF16)] = foldEach<F32, op, U16, asBf16>;
    row[static_cast<int>(DType::kF8E5M2)] = foldNarrow<castNarrowToF32<E5M2>, 1, op>;
    row[static_cast<int>(DType::kF8E4M3)] = foldNarrow<castNarrowToF32<E4M3>, 1, op>;
  }
}

// Sets the casts from a type that `toF32` widens, exactly or rounded to odd. Casts to and from f32
// itself are set elsewhere.
template <CastLoop toF32, size_t SrcBytes>
constexpr void fillCasts(CastLoop* row) {
  row[0] = castThroughF32<toF32, castF32ToF64, SrcBytes, 8>;
  row[2] = castThroughF32<toF32, castF32ToF16, SrcBytes, 2>;
  row[3] = castThroughF32<toF32, castF32ToBf16, SrcBytes, 2>;
  row[4] = castThroughF32<toF32, castF32ToNarrow<E5M2>, SrcBytes, 1>;
  row[5] = castThroughF32<toF32, castF32ToNarrow<E4M3>, SrcBytes, 1>;
}

constexpr VectorTable makeTable() {
  VectorTable table{};
  table.copy = copyLoop;
  table.stream = streamLoop;

  fillCasts<castF64ToOddF32, 8>(table.cast[0]);
  fillCasts<castF16ToF32, 2>(table.cast[2]);
  fillCasts<castBf16ToF32, 2>(table.cast[3]);
  fillCasts<castNarrowToF32<E5M2>, 1>(table.cast[4]);
  fillCasts<castNarrowToF32<E4M3>, 1>(table.cast[5]);
  table.cast[0][0] = castRun<canonicalF64>;
  table.cast[1][1] = castRun<canonicalF32>;
  setCast<castF64ToF32, DType::kF64, DType::kF32>(table);
  setCast<castF32ToF64, DType::kF32, DType::kF64>(table);
  setCast<castF16ToF32, DType::kF16, DType::kF32>(table);
  setCast<castF32ToF16, DType::kF32, DType::kF16>(table);
  setCast<castBf16ToF32, DType::kBF16, DType::kF32>(table);
  setCast<castF32ToBf16, DType::kF32, DType::kBF16>(table);
  table.cast[1][4] = castRun<castF32ToNarrow<E5M2>>;
  table.cast[1][5] = castRun<castF32ToNarrow<E4M3>>;
  table.cast[4][1] = castRun<castNarrowToF32<E5M2>>;
  table.cast[5][1] = castRun<castNarrowToF32<E4M3>>;

  fillFolds<ReduceOp::kSum>(table);
  fillFolds<ReduceOp::kMax>(table);
  fillFolds<ReduceOp::kMin>(table);
  fillFolds<ReduceOp::kProduct>(table);
  fillFolds<ReduceOp::kAnd>(table);
  fillFolds<ReduceOp::kOr>(table);
  fillFolds<ReduceOp::kXor>(table);
  table.divide[0] = divideFloat<F64>;
  table.divide[1] = divideFloat<F32>;
  fillWeighs<true>(table.weigh);
  fillWeighs<false>(table.addWeighed);
  table.quantise[1] = quantiseBlock<copyF32>;
  table.quantise[2] = quantiseBlock<castF16ToF32>;
  table.quantise[3] = quantiseBlock<castBf16ToF32>;
  return table;
}

#undef WINDLASS_INLINE
#undef WINDLASS_LOOP
