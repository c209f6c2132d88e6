// SPDX-License-Identifier: Apache-2.0
// The loops of a fold of contiguous elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {

// The loops for one source dtype and op.
struct FoldSteps {
  size_t accumulatorBytes;
  DType accumulatorType;
  ReduceOp op;
  CastLoop start;  // nullptr: the accumulator starts as a copy
  FoldLoop fold;
  DivideLoop divide;  // nullptr unless avg
  CastLoop finish;    // nullptr: the accumulator is the result
  CastLoop finishStreaming;

  FoldSteps(const VectorTable& table, DType dtype, ReduceOp which) noexcept
      : accumulatorType(accumulatorOf(dtype)), op(which) {
    const int from = floatIndex(dtype);
    const int to = floatIndex(accumulatorType);
    const bool avg = op == ReduceOp::kAvg;
    accumulatorBytes = sizeOf(accumulatorType);
    start = from == to ? nullptr : table.cast[from][to];
    fold = table.fold[static_cast<int>(avg ? ReduceOp::kSum : op)][static_cast<int>(dtype)];
    divide = avg ? table.divide[to] : nullptr;
    finish = from < 0 ? nullptr : table.cast[to][from];
    finishStreaming = from < 0 ? nullptr : table.castStreaming[to][from];
  }

  // accumulator = the fold of `count` elements of each source at address source(i). avg divides by
  // `terms`.
  template <typename Source>
  void run(unsigned char* accumulator, uint32_t nsrc, uint32_t terms, size_t count,
           Source source) const noexcept {
    if (nsrc == 0) {
      const uint64_t identity = identityBits(accumulatorType, op);
      for (size_t i = 0; i < count; ++i)
        __builtin_memcpy(accumulator + i * accumulatorBytes, &identity, accumulatorBytes);
      return;
    }
    // Without an initial cast, the first fold reads the first term in place. A single term is
    // copied.
    const unsigned char* first = source(0);
    if (start != nullptr) {
      start(accumulator, first, count);
      first = accumulator;
    } else if (nsrc == 1) {
      copyBytes(accumulator, first, count * accumulatorBytes);
    }
    for (uint32_t i = 1; i < nsrc; ++i) {
      fold(accumulator, first, source(i), count);
      first = accumulator;
    }
    if (divide != nullptr) divide(accumulator, terms, count);
  }
};

}  // namespace windlass
