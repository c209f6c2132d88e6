// SPDX-License-Identifier: Apache-2.0
// The loops of one vector path. Each path_*.cpp includes this once, under its own target pragma and
// in its own namespace. Everything here is internal to that file. It names no template of the
// standard library, so that the linker cannot share a function that was built for a wider CPU.
//
// Before inclusion, define WINDLASS_PATH_WIDTH, the bytes of a vector register, and include
// <utility> and vector_table.h. If WINDLASS_PATH_F16C is 1, also include <immintrin.h>. Registers
// of more than 16 bytes need the type Register, and its load, storeAligned, storeAnywhere and
// stream.

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
#include "native/isa/sim/vector_transpose.inl"
#if WINDLASS_PATH_WIDTH > 16
#include "native/isa/sim/vector_copy.inl"
#endif

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
template <CastLoop toF32, DType from>
constexpr void fillCasts(VectorTable& table) {
  constexpr size_t kBytes = sizeOf(from);
  setRun<castThroughF32<toF32, castF32ToF64, kBytes, 8>, from, DType::kF64>(table);
  setRun<castThroughF32<toF32, castF32ToF16, kBytes, 2>, from, DType::kF16>(table);
  setRun<castThroughF32<toF32, castF32ToBf16, kBytes, 2>, from, DType::kBF16>(table);
  setRun<castThroughF32<toF32, castF32ToNarrow<E5M2>, kBytes, 1>, from, DType::kF8E5M2>(table);
  setRun<castThroughF32<toF32, castF32ToNarrow<E4M3>, kBytes, 1>, from, DType::kF8E4M3>(table);
}

constexpr VectorTable makeTable() {
  VectorTable table{};
  table.copy = copyLoop;
  table.stream = streamLoop;
  table.transpose[0] = transposePlane<1>;
  table.transpose[1] = transposePlane<2>;
  table.transpose[2] = transposePlane<4>;
  table.transpose[3] = transposePlane<8>;

  fillCasts<castF64ToOddF32, DType::kF64>(table);
  fillCasts<castF16ToF32, DType::kF16>(table);
  fillCasts<castBf16ToF32, DType::kBF16>(table);
  fillCasts<castNarrowToF32<E5M2>, DType::kF8E5M2>(table);
  fillCasts<castNarrowToF32<E4M3>, DType::kF8E4M3>(table);
  setRun<canonicalF64, DType::kF64, DType::kF64>(table);
  setRun<canonicalF32, DType::kF32, DType::kF32>(table);
  setCast<castF64ToF32, DType::kF64, DType::kF32>(table);
  setCast<castF32ToF64, DType::kF32, DType::kF64>(table);
  setCast<castF16ToF32, DType::kF16, DType::kF32>(table);
  setCast<castF32ToF16, DType::kF32, DType::kF16>(table);
  setCast<castBf16ToF32, DType::kBF16, DType::kF32>(table);
  setCast<castF32ToBf16, DType::kF32, DType::kBF16>(table);
  setRun<castF32ToNarrow<E5M2>, DType::kF32, DType::kF8E5M2>(table);
  setRun<castF32ToNarrow<E4M3>, DType::kF32, DType::kF8E4M3>(table);
  setRun<castNarrowToF32<E5M2>, DType::kF8E5M2, DType::kF32>(table);
  setRun<castNarrowToF32<E4M3>, DType::kF8E4M3, DType::kF32>(table);

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
