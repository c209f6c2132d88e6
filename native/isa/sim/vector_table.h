// SPDX-License-Identifier: Apache-2.0
// A table of loops for each vector path. One table is chosen at run time. Pointers need no
// alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "native/isa/sim/loops.h"
#include "windlass/kernel.h"

namespace windlass {

enum class Path { kPortable = 0, kAvx2, kAvx512, kAvx512Bf16, kAvx512Fp16 };
constexpr int kPathCount = 5;

// Row and column numbers of VectorTable::cast.
constexpr int kFloatCount = 6;
constexpr int floatIndex(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0;
    case DType::kF32:
      return 1;
    case DType::kF16:
      return 2;
    case DType::kBF16:
      return 3;
    case DType::kF8E5M2:
      return 4;
    case DType::kF8E4M3:
      return 5;
    default:
      return -1;
  }
}

// Returns the dtype in which a fold of `dtype` accumulates.
constexpr DType accumulatorOf(DType dtype) {
  return floatIndex(dtype) > 1 ? DType::kF32 : dtype;
}

// The memory ranges of a loop do not overlap.
using CopyLoop = void (*)(void* dst, const void* src, size_t bytes);
using CastLoop = void (*)(void* dst, const void* src, size_t count);
// Casts rows with a multiple of kCastBlock elements, and prefetches both sides. Steps are from one
// row to the next, in bytes.
using CastRowsLoop = void (*)(void* dst, int64_t dstStep, const void* src, int64_t srcStep,
                              int64_t rows, size_t count);
constexpr size_t kCastBlock = 16;
// dst[row][column] = src[column][row]. Steps are from one row of either side to the next, in bytes.
struct Plane {
  unsigned char* dst;
  int64_t dstStep;
  const int64_t* dstRows;  // nullptr, or the offset of each row in bytes, instead of dstStep
  const unsigned char* src;
  int64_t srcStep;
  int64_t rows;
  int64_t columns;
};
// Casts elements to `castBytes` bytes each, unless `cast` is nullptr. Otherwise, it streams if
// asked and if rows of dst begin at lines; the caller issues SFENCE.
using TransposeLoop = void (*)(const Plane& plane, CastLoop cast, size_t castBytes, bool streams);
// Bytes that a transpose writes in a row before it goes to the next, and distance of rows from
// which they share few cache sets.
constexpr int64_t kRunBytes = 256;
constexpr int64_t kConflictStep = 1024;
// dst = accumulator op src; dst may be the accumulator.
using FoldLoop = void (*)(void* dst, const void* accumulator, const void* src, size_t count);
using DivideLoop = void (*)(void* accumulator, uint32_t divisor, size_t count);
// accumulator = weight * src, or += weight * src. Rounds the weight to the accumulator's type, and
// each step.
using WeighLoop = void (*)(void* accumulator, const void* src, double weight, size_t count);
// Writes one block of up to kQuantBlock elements over its scale as f8e4m3. Returns the scale.
using QuantiseLoop = float (*)(void* dst, const void* src, size_t count);

// Maximum number of rows to prefetch. The CPU detects no stream in rows that are not adjacent.
constexpr int64_t kMostRowsAhead = 32;
constexpr int64_t rowsAhead(size_t rowBytes) {
  constexpr size_t kAheadBytes = 2048;
  const auto fits = static_cast<int64_t>(kAheadBytes / rowBytes);
  return fits < kMostRowsAhead ? fits : kMostRowsAhead;
}

struct VectorTable {
  CopyLoop copy;
  CopyLoop stream;  // copy by streaming stores; the caller issues SFENCE
  // Indexed [from][to] by floatIndex. A cast from a type to itself makes NaNs canonical and changes
  // no other value.
  CastLoop cast[kFloatCount][kFloatCount];
  CastLoop castStreaming[kFloatCount][kFloatCount];  // the caller issues SFENCE
  CastRowsLoop castRows[kFloatCount][kFloatCount];  // nullptr: none
  TransposeLoop transpose[4];  // for elements of 1, 2, 4 and 8 bytes
  TransposeLoop transposeOf(size_t elementBytes) const noexcept {
    return transpose[__builtin_ctzll(elementBytes)];
  }
  // Indexed [op][dtype of the source]. nullptr if canReduce is false, and for avg, which folds as
  // sum.
  FoldLoop fold[kReduceOpCount][kDTypeCount];
  // For f64 and f32 accumulators, indexed by floatIndex.
  DivideLoop divide[2];
  // Indexed by floatIndex of the source.
  WeighLoop weigh[kFloatCount];
  WeighLoop addWeighed[kFloatCount];
  QuantiseLoop quantise[kFloatCount];  // nullptr for f64 and f8
};

// The table of each path. Call a function only on a CPU that has the path.
const VectorTable& portableTable() noexcept;
#if defined(__x86_64__)
const VectorTable& avx2Table() noexcept;
const VectorTable& avx512Table() noexcept;
const VectorTable& avx512Bf16Table() noexcept;
const VectorTable& avx512Fp16Table() noexcept;
#endif

// Returns nullptr if this CPU or this build lacks the path.
const VectorTable* tableFor(Path path) noexcept;
const char* nameOf(Path path) noexcept;

// Copies bytes that do not overlap. If it streams, the caller issues SFENCE.
inline void copyOrStream(const VectorTable& table, void* dst, const void* src, size_t bytes,
                         bool streams) noexcept {
  if (streams) {
    table.stream(dst, src, bytes);
  } else {
    copyBytes(dst, src, bytes);
  }
}

struct PathChoice {
  Path path;
  char error[160];  // empty, or why the request is invalid
};
// The path for a value of WINDLASS_ISA; nullptr or "" asks for the best.
PathChoice choosePath(const char* request) noexcept;

namespace detail {

// TMOVE_CVT and TFOLD on a given path. A null `wire` adds no step.
void moveConvert(const VectorTable& table, const StridedView* dst, uint32_t ndst,
                 const StridedView& src, const DType* wire,
                 Stores stores = Stores::kCached) noexcept;
void fold(const VectorTable& table, const StridedView* dst, uint32_t ndst, const StridedView* src,
          uint32_t nsrc, ReduceOp op, const DType* wire, Stores stores = Stores::kCached) noexcept;

}  // namespace detail
}  // namespace windlass
