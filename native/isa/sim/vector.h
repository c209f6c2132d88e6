// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tiles, on sim: element by element over the valid rows and columns.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "native/isa/checked/arithmetic.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

// The valid part of a tile.
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

// Returns true if two tiles of one instruction have the same valid sizes.
template <typename A, typename B>
bool areAlike(A& a, B& b) noexcept {
  return fits(a.GetValidRow() == b.GetValidRow() && a.GetValidCol() == b.GetValidCol(),
              TileMisuse::kUnalike);
}

template <typename Dst, typename A, typename B>
inline void combine(Dst& dst, A& a, B& b, ReduceOp op) noexcept {
  using T = typename Dst::DType;
  static_assert(std::is_same_v<T, typename A::DType> && std::is_same_v<T, typename B::DType>);
  if (!areAlike(dst, a) || !areAlike(dst, b)) return;
  const ValidView<Dst> out(dst);
  const ValidView<A> left(a);
  const ValidView<B> right(b);
  const StridedView to = out.view();
  const StridedView from[2] = {left.view(), right.view()};
  TFOLD(&to, 1, from, 2, op);
}

template <typename TileT>
checked::TileRef refOf(TileT& tile) noexcept {
  checked::TileRef ref = {};
  ref.at.offset = static_cast<uint32_t>(reinterpret_cast<unsigned char*>(tile.data()) -
                                        unifiedBuffer());
  ref.dtype = DTypeOf<typename TileT::DType>::value;
  ref.rows = TileT::Rows;
  ref.columns = TileT::Cols;
  ref.validRows = tile.GetValidRow();
  ref.validColumns = tile.GetValidCol();
  return ref;
}

template <typename T>
uint64_t bitsOf(T value) noexcept {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename Dst, typename Src>
void combineScalar(checked::Op op, Dst& dst, Src& src, typename Src::DType scalar) {
  static_assert(std::is_same_v<typename Dst::DType, typename Src::DType>, "one dtype");
  checked::combineScalar(unifiedBuffer(), op, refOf(dst), refOf(src), bitsOf(scalar));
}

template <typename Dst, typename Src>
void convert(Dst& dst, Src& src, pto::RoundMode mode,
             std::optional<pto::SaturationMode> saturation) {
  constexpr DType kFrom = DTypeOf<typename Src::DType>::value;
  constexpr DType kTo = DTypeOf<typename Dst::DType>::value;
  if (!windlass::detail::areAlike(dst, src)) return;
  const bool isNearest = mode == pto::RoundMode::CAST_RINT || mode == pto::RoundMode::CAST_NONE;
  if (isNearest && isFloat(kFrom) && isFloat(kTo)) {
    const ValidView<Dst> out(dst);
    const ValidView<Src> in(src);
    TMOVE_CVT(out.view(), in.view());
    return;
  }
  if (!hasRoundMode(kFrom, kTo, mode)) {
    std::fputs("TCVT on sim has CAST_ODD from f32 to f16 alone\n", stderr);
    std::abort();
  }
  checked::convert(unifiedBuffer(), refOf(dst), refOf(src),
                   checked::conversionOf(checked::kA5, kFrom, kTo, mode, saturation));
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

// dst = a - b, dst = src op scalar, and dst = scalar, with the arithmetic of the checked targets.
template <typename Dst, typename A, typename B>
inline void TSUB(Dst& dst, A& a, B& b) {
  static_assert(std::is_same_v<typename Dst::DType, typename A::DType> &&
                    std::is_same_v<typename Dst::DType, typename B::DType>,
                "one dtype");
  windlass::checked::combine(windlass::detail::unifiedBuffer(), windlass::checked::Op::kSub,
                             windlass::detail::refOf(dst), windlass::detail::refOf(a),
                             windlass::detail::refOf(b));
}
template <typename Dst, typename Src>
inline void TADDS(Dst& dst, Src& src, typename Src::DType scalar) {
  windlass::detail::combineScalar(windlass::checked::Op::kAddScalar, dst, src, scalar);
}
template <typename Dst, typename Src>
inline void TMULS(Dst& dst, Src& src, typename Src::DType scalar) {
  windlass::detail::combineScalar(windlass::checked::Op::kMulScalar, dst, src, scalar);
}
template <typename Dst, typename Src>
inline void TDIVS(Dst& dst, Src& src, typename Src::DType scalar) {
  static_assert(!std::is_integral_v<typename Src::DType>, "it divides floats");
  windlass::detail::combineScalar(windlass::checked::Op::kDivScalar, dst, src, scalar);
}
template <typename Dst>
inline void TEXPANDS(Dst& dst, typename Dst::DType scalar) {
  windlass::checked::fill(windlass::detail::unifiedBuffer(), windlass::detail::refOf(dst),
                          windlass::detail::bitsOf(scalar));
}
template <typename Dst, typename Src>
inline void TMOV(Dst& dst, Src& src) noexcept {
  static_assert(std::is_same_v<typename Dst::DType, typename Src::DType>, "one dtype");
  if (!windlass::detail::areAlike(dst, src)) return;
  const windlass::detail::ValidView<Dst> out(dst);
  const windlass::detail::ValidView<Src> in(src);
  windlass::TMOVE_CVT(out.view(), in.view());
}

// dst = cast(src), with the modes and the saturation of A5. A cast between floats to nearest even
// is that of TMOVE_CVT: overflow becomes infinity if the type has one.
template <typename Dst, typename Src>
inline void TCVT(Dst& dst, Src& src, RoundMode mode) {
  windlass::detail::convert(dst, src, mode, std::nullopt);
}
template <typename Dst, typename Src>
inline void TCVT(Dst& dst, Src& src, RoundMode mode, SaturationMode saturation) {
  windlass::detail::convert(dst, src, mode, saturation);
}
// sim needs no scratch.
template <typename Dst, typename Src, typename Scratch>
inline void TCVT(Dst& dst, Src& src, Scratch&, RoundMode mode) {
  windlass::detail::convert(dst, src, mode, std::nullopt);
}
template <typename Dst, typename Src, typename Scratch>
inline void TCVT(Dst& dst, Src& src, Scratch&, RoundMode mode, SaturationMode saturation) {
  windlass::detail::convert(dst, src, mode, saturation);
}

}  // namespace sim
}  // namespace pto
