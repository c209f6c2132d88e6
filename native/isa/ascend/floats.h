// SPDX-License-Identifier: Apache-2.0
// Casts and folds of floats through f32. Both architectures convert each of their other float types
// to and from f32, and f32 holds all their values exactly. A value is rounded to nearest even once
// for each type that it passes.
#pragma once

#include <cstdint>

#include "native/base/dtype.h"
#include "native/isa/ascend/buffers.h"

namespace windlass::ascend {

// Calls run(T()) with the element type of f16, bf16, f8e4m3 or f8e5m2. Returns false for any other
// dtype.
template <typename Run>
WL_CORE inline bool asNarrowFloat(DType dtype, const Run& run) {
  switch (dtype) {
    case DType::kF16:
      run(half());
      return true;
    case DType::kBF16:
      run(bfloat16_t());
      return true;
    case DType::kF8E4M3:
      run(float8_e4m3_t());
      return true;
    case DType::kF8E5M2:
      run(float8_e5m2_t());
      return true;
    default:
      return false;
  }
}

WL_CORE inline bool passesF32(DType dtype) {
  return dtype == DType::kF32 || asNarrowFloat(dtype, [](auto) {});
}

template <typename TileT>
WL_CORE inline void accumulate(ReduceOp op, TileT& sum, TileT& term) {
  switch (op) {
    case ReduceOp::kMax:
      TMAX(sum, sum, term);
      return;
    case ReduceOp::kMin:
      TMIN(sum, sum, term);
      return;
    case ReduceOp::kProduct:
      TMUL(sum, sum, term);
      return;
    default:
      TADD(sum, sum, term);
  }
}

// Processes the boxes of a walk, one at a time.
template <class Form>
class Floats {
  using F32 = typename Form::template Of<float>;

 public:
  WL_CORE Floats(uint32_t room, const Walk& walk, const Views& dst, DType wire)
      : inputs_(room), results_(room), walk_(walk), dst_(dst), to_(dst[0].dtype), wire_(wire) {}

  // dst = cast(cast(left fold of src to the wire dtype) to dst's dtype). A fold of
  // several terms is first rounded to src's dtype. avg divides by `terms`. Without terms, dst is
  // the identity of `op`.
  WL_CORE void fold(const Box& box, const Views& src, ReduceOp op, uint32_t terms) {
    results_.begin();
    F32 sum(box.rows, box.columns);
    F32 widened(box.rows, box.columns);
    TASSIGN(sum, results_.sum());
    TASSIGN(widened, results_.term());
    const DType from = src.count > 0 ? src[0].dtype : to_;
    if (src.count == 0) {
      const auto identity = static_cast<uint32_t>(identityBits(DType::kF32, op));
      float value;
      __builtin_memcpy(&value, &identity, sizeof value);
      inputs_.none([&] { TEXPANDS(sum, value); });
    } else {
      // max(x, x) is x, except that a NaN becomes the canonical NaN.
      load(box, src[0], [&](auto& term) { TCVT(sum, term, RoundMode::CAST_NONE); },
           [&](F32& term) { TMAX(sum, term, term); });
    }
    for (uint32_t s = 1; s < src.count; ++s) {
      load(box, src[s],
           [&](auto& term) {
             TCVT(widened, term, RoundMode::CAST_NONE);
             accumulate(op, sum, widened);
           },
           [&](F32& term) { accumulate(op, sum, term); });
    }
    if (op == ReduceOp::kAvg) TDIVS(sum, sum, static_cast<float>(terms));
    const bool isExact = src.count <= 1 && op != ReduceOp::kAvg;
    if (!isExact && (wire_ != from || to_ != from)) through(from, box, sum);
    finish(box, from, sum);
  }

  // dst = the sum of weights[s] * src[s] in array order, in f32. Each weight, each product and each
  // sum is rounded. Without sources, dst is zero.
  WL_CORE void foldWeighted(const Box& box, const Views& src, const Weights& weights) {
    results_.begin();
    F32 sum(box.rows, box.columns);
    F32 product(box.rows, box.columns);
    TASSIGN(sum, results_.sum());
    TASSIGN(product, results_.term());
    if (src.count == 0) inputs_.none([&] { TEXPANDS(sum, 0.0f); });
    for (uint32_t s = 0; s < src.count; ++s) {
      const auto weight = static_cast<float>(weights[s]);
      F32& into = s == 0 ? sum : product;
      load(box, src[s],
           [&](auto& term) {
             TCVT(into, term, RoundMode::CAST_NONE);
             TMULS(into, into, weight);
           },
           [&](F32& term) { TMULS(into, term, weight); });
      if (s > 0) TADD(sum, sum, product);
    }
    finish(box, to_, sum);
  }

  WL_CORE void end() {
    inputs_.end();
    results_.end();
  }

 private:
  // Passes a tile of f32 to asF32, and a tile of another float to asOther.
  template <typename AsOther, typename AsF32>
  WL_CORE void load(const Box& box, const StridedView& src, const AsOther& asOther,
                    const AsF32& asF32) {
    if (src.dtype == DType::kF32) {
      inputs_.load<float, Form>(walk_, box, src, asF32);
    } else {
      asNarrowFloat(src.dtype, [&](auto element) {
        inputs_.template load<decltype(element), Form>(walk_, box, src, asOther);
      });
    }
  }

  // Rounds the values to a dtype.
  WL_CORE void through(DType dtype, const Box& box, F32& values) {
    asNarrowFloat(dtype, [&](auto element) {
      typename Form::template Of<decltype(element)> step(box.rows, box.columns);
      TASSIGN(step, results_.step());
      TCVT(step, values, RoundMode::CAST_RINT);
      TCVT(values, step, RoundMode::CAST_NONE);
    });
  }

  // Casts f32 values of dtype `from` to the wire dtype and to the destinations' dtype, and stores
  // them.
  WL_CORE void finish(const Box& box, DType from, F32& values) {
    if (wire_ != from && wire_ != to_) through(wire_, box, values);
    if (to_ == DType::kF32) {
      results_.store<float>(walk_, box, dst_, values);
      return;
    }
    asNarrowFloat(to_, [&](auto element) {
      using T = decltype(element);
      typename Form::template Of<T> result(box.rows, box.columns);
      TASSIGN(result, results_.result());
      TCVT(result, values, RoundMode::CAST_RINT);
      results_.template store<T>(walk_, box, dst_, result);
    });
  }

  Inputs inputs_;
  Results results_;
  const Walk& walk_;
  const Views& dst_;
  const DType to_;
  const DType wire_;
};

}  // namespace windlass::ascend
