// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tiles, on sim: element by element over the valid rows and columns.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#include "native/isa/sim/fused.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

// A tile's valid part.
template <typename TileT>
class ValidView {
 public:
  explicit ValidView(const TileT& tile) noexcept
      : shape_{tile.GetValidRow(), tile.GetValidCol()}, stride_{TileT::kCols, 1}, tile_(tile) {}
  StridedView view() const noexcept {
    return {tile_.data(), DTypeOf<typename TileT::Element>::value, 2, shape_, stride_};
  }

 private:
  int64_t shape_[2];
  int64_t stride_[2];
  const TileT& tile_;
};

template <typename Dst, typename A, typename B>
inline void combine(const Dst& dst, const A& a, const B& b, ReduceOp op) noexcept {
  using T = typename Dst::Element;
  static_assert(std::is_same_v<T, typename A::Element> && std::is_same_v<T, typename B::Element>);
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

// dst = a op b, with the arithmetic of TFOLD.
template <typename Dst, typename A, typename B>
inline void TADD(const Dst& dst, const A& a, const B& b) noexcept {
  detail::combine(dst, a, b, ReduceOp::kSum);
}
template <typename Dst, typename A, typename B>
inline void TMUL(const Dst& dst, const A& a, const B& b) noexcept {
  detail::combine(dst, a, b, ReduceOp::kProduct);
}
template <typename Dst, typename A, typename B>
inline void TMAX(const Dst& dst, const A& a, const B& b) noexcept {
  detail::combine(dst, a, b, ReduceOp::kMax);
}
template <typename Dst, typename A, typename B>
inline void TMIN(const Dst& dst, const A& a, const B& b) noexcept {
  detail::combine(dst, a, b, ReduceOp::kMin);
}

// dst = cast(src) between float dtypes, with the casts of TMOVE_CVT: to nearest even, and overflow
// to infinity where the type has one.
template <RoundMode mode = RoundMode::RINT, typename Dst, typename Src>
inline void TCVT(const Dst& dst, const Src& src) noexcept {
  static_assert(mode == RoundMode::RINT || mode == RoundMode::NONE, "sim rounds to nearest even");
  static_assert(isFloat(DTypeOf<typename Dst::Element>::value) &&
                    isFloat(DTypeOf<typename Src::Element>::value),
                "sim converts between float dtypes");
  assert(src.GetValidRow() == dst.GetValidRow() && src.GetValidCol() == dst.GetValidCol());
  const detail::ValidView<Dst> out(dst);
  const detail::ValidView<Src> in(src);
  TMOVE_CVT(out.view(), in.view());
}

}  // namespace windlass
