// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tiles, on sim: element by element over the valid rows and columns.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

// A tile's valid part.
template <typename TileT>
class ValidView {
 public:
  explicit ValidView(TileT& tile) noexcept
      : shape_{tile.GetValidRow(), tile.GetValidCol()}, stride_{TileT::Cols, 1}, tile_(tile) {}
  StridedView view() const noexcept {
    return {tile_.data(), DTypeOf<typename TileT::DType>::value, 2, shape_, stride_};
  }

 private:
  int64_t shape_[2];
  int64_t stride_[2];
  TileT& tile_;
};

template <typename Dst, typename A, typename B>
inline void combine(Dst& dst, A& a, B& b, ReduceOp op) noexcept {
  using T = typename Dst::DType;
  static_assert(std::is_same_v<T, typename A::DType> && std::is_same_v<T, typename B::DType>);
  assert(a.GetValidRow() == dst.GetValidRow() && a.GetValidCol() == dst.GetValidCol());
  assert(b.GetValidRow() == dst.GetValidRow() && b.GetValidCol() == dst.GetValidCol());
  const ValidView<Dst> out(dst);
  const ValidView<A> left(a);
  const ValidView<B> right(b);
  const StridedView to = out.view();
  const StridedView from[2] = {left.view(), right.view()};
  TFOLD(&to, 1, from, 2, op);
}

}  // namespace detail
}  // namespace windlass

namespace pto {
inline namespace sim {

// dst = a op b, with the arithmetic of TFOLD.
template <typename Dst, typename A, typename B>
inline void TADD(Dst& dst, A& a, B& b) noexcept {
  windlass::detail::combine(dst, a, b, windlass::ReduceOp::kSum);
}
template <typename Dst, typename A, typename B>
inline void TMUL(Dst& dst, A& a, B& b) noexcept {
  windlass::detail::combine(dst, a, b, windlass::ReduceOp::kProduct);
}
template <typename Dst, typename A, typename B>
inline void TMAX(Dst& dst, A& a, B& b) noexcept {
  windlass::detail::combine(dst, a, b, windlass::ReduceOp::kMax);
}
template <typename Dst, typename A, typename B>
inline void TMIN(Dst& dst, A& a, B& b) noexcept {
  windlass::detail::combine(dst, a, b, windlass::ReduceOp::kMin);
}

// dst = cast(src) between float dtypes, with the casts of TMOVE_CVT: to nearest even, and overflow
// to infinity where the type has one. sim has no other mode.
template <typename Dst, typename Src>
inline void TCVT(Dst& dst, Src& src, RoundMode mode) noexcept {
  using windlass::DTypeOf;
  static_assert(windlass::isFloat(DTypeOf<typename Dst::DType>::value) &&
                    windlass::isFloat(DTypeOf<typename Src::DType>::value),
                "sim converts between float dtypes");
  if (mode != RoundMode::CAST_RINT && mode != RoundMode::CAST_NONE) {
    std::fputs("TCVT on sim rounds to nearest even: give it CAST_RINT or CAST_NONE\n", stderr);
    std::abort();
  }
  assert(src.GetValidRow() == dst.GetValidRow() && src.GetValidCol() == dst.GetValidCol());
  const windlass::detail::ValidView<Dst> out(dst);
  const windlass::detail::ValidView<Src> in(src);
  windlass::TMOVE_CVT(out.view(), in.view());
}

}  // namespace sim
}  // namespace pto
