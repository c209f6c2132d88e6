// SPDX-License-Identifier: Apache-2.0
// Folds of integers in i32 or i16. Sums and products wrap as for the unsigned type of the same
// size. An unsigned maximum is the signed maximum of values whose top bit is flipped. i8 and u8
// convert to and from i16 through f16, which holds them exactly.
#pragma once

#include <cstdint>

#include "native/isa/ascend/buffers.h"
#include "native/isa/ascend/floats.h"

namespace windlass::ascend {

WL_CORE inline bool compares(ReduceOp op) {
  return op == ReduceOp::kMax || op == ReduceOp::kMin;
}

// Returns the identity of `op` for signed elements of type T.
template <typename T>
WL_CORE constexpr T identityOf(ReduceOp op) {
  return static_cast<T>(identityBits(sizeof(T) == 4 ? DType::kI32 : DType::kI16, op));
}

// Folds elements of T's size, which is signed. kFlips is true for unsigned elements.
template <typename T, bool kFlips, class Form>
WL_CORE inline void foldWords(uint32_t room, const Walk& walk, const Views& dst,
                              const Views& src, ReduceOp op) {
  using Words = typename Form::template Of<T>;
  constexpr T kTopBit = static_cast<T>(T{1} << (sizeof(T) * 8 - 2)) * -2;
  Inputs inputs(room);
  Results results(room);
  const bool flips = kFlips && compares(op);
  forEachBox<Form>(walk, [&](const Box& box) {
    results.begin();
    Words sum(box.rows, box.columns);
    Words flipped(box.rows, box.columns);
    TASSIGN(sum, results.sum());
    TASSIGN(flipped, results.term());
    if (src.count == 0) inputs.none([&] { TEXPANDS(sum, identityOf<T>(op)); });
    for (uint32_t s = 0; s < src.count; ++s) {
      inputs.load<T, Form>(walk, box, src[s], [&](Words& term) {
        if (flips) {
          TADDS(s == 0 ? sum : flipped, term, kTopBit);
        } else if (s == 0) {
          TMAX(sum, term, term);
        }
        if (s > 0) accumulate(op, sum, flips ? flipped : term);
      });
    }
    if (flips) TADDS(sum, sum, kTopBit);
    results.store<T>(walk, box, dst, sum);
  });
  inputs.end();
  results.end();
}

// T is int8_t or uint8_t.
template <typename T, class Form>
WL_CORE inline void foldBytes(uint32_t room, const Walk& walk, const Views& dst,
                              const Views& src, ReduceOp op) {
  using Bytes = typename Form::template Of<T>;
  using Words = typename Form::template Of<int16_t>;
  using Halves = typename Form::template Of<half>;
  constexpr bool kUnsigned = T(-1) > T(0);
  Inputs inputs(room);
  Results results(room);
  forEachBox<Form>(walk, [&](const Box& box) {
    results.begin();
    Words sum(box.rows, box.columns);
    Words word(box.rows, box.columns);
    Halves step(box.rows, box.columns);
    Bytes result(box.rows, box.columns);
    TASSIGN(sum, results.sum());
    TASSIGN(word, results.term());
    TASSIGN(step, results.step());
    TASSIGN(result, results.result());
    const auto widen = [&](Bytes& term, Words& to) {
      TCVT(step, term, RoundMode::CAST_NONE);
      TCVT(to, step, RoundMode::CAST_RINT, SaturationMode::ON);
    };
    const auto identity = static_cast<uint8_t>(identityBits(dst[0].dtype, op));
    if (src.count == 0) inputs.none([&] { TEXPANDS(sum, int16_t{identity}); });
    for (uint32_t s = 0; s < src.count; ++s) {
      inputs.load<T, Form>(walk, box, src[s], [&](Bytes& term) {
        widen(term, s == 0 ? sum : word);
        if (s > 0) accumulate(op, sum, word);
      });
    }
    // Keeps the low byte only, moved to the upper byte: f16 holds a multiple of 256 exactly.
    TMULS(sum, sum, int16_t{256});
    if (kUnsigned) TADDS(sum, sum, INT16_MIN);
    TCVT(step, sum, RoundMode::CAST_NONE);
    TMULS(step, step, halfOf(-8));
    if (kUnsigned) TADDS(step, step, halfOf(7));
    TCVT(result, step, RoundMode::CAST_RINT, SaturationMode::ON);
    results.store<T>(walk, box, dst, result);
  });
  inputs.end();
  results.end();
}

}  // namespace windlass::ascend
