// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tiles under the names of the tile ISA, for the CPU and for cores of GPUs. A target
// defines combineTiles, combineTileScalar, fillTile, moveTile and convertTile next to its Tile. All
// but convertTile get tiles of one dtype. A scalar is the bits of one element. Without a
// saturation, that of the dtypes applies.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/conversions.h"
#include "native/isa/enums.h"
#include "windlass/kernel.h"

namespace pto {
namespace detail {

template <typename A, typename B>
constexpr bool oneDType = std::is_same_v<typename A::DType, typename B::DType>;

template <typename T>
WL_CORE_INLINE uint64_t bitsOf(T value) noexcept {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename Dst, typename A, typename B>
WL_CORE_INLINE void combined(const char* name, windlass::checked::Op op, Dst& dst, A& a, B& b) {
  static_assert(oneDType<Dst, A> && oneDType<Dst, B>, "one dtype");
  combineTiles(name, op, dst, a, b);
}

template <typename Dst, typename Src>
WL_CORE_INLINE void combinedWith(const char* name, windlass::checked::Op op, Dst& dst, Src& src,
                                 typename Src::DType scalar) {
  static_assert(oneDType<Dst, Src>, "one dtype");
  combineTileScalar(name, op, dst, src, bitsOf(scalar));
}

}  // namespace detail

#define WINDLASS_COMBINES(name, op)                                        \
  template <typename Dst, typename A, typename B>                          \
  WL_CORE_INLINE void name(Dst& dst, A& a, B& b) {                         \
    detail::combined(#name, windlass::checked::Op::op, dst, a, b);         \
  }
#define WINDLASS_COMBINES_SCALAR(name, op)                                           \
  template <typename Dst, typename Src>                                              \
  WL_CORE_INLINE void name(Dst& dst, Src& src, typename Src::DType scalar) {         \
    detail::combinedWith(#name, windlass::checked::Op::op, dst, src, scalar);        \
  }
WINDLASS_COMBINES(TADD, kAdd)
WINDLASS_COMBINES(TSUB, kSub)
WINDLASS_COMBINES(TMUL, kMul)
WINDLASS_COMBINES(TMAX, kMax)
WINDLASS_COMBINES(TMIN, kMin)
WINDLASS_COMBINES_SCALAR(TADDS, kAddScalar)
WINDLASS_COMBINES_SCALAR(TMULS, kMulScalar)
#undef WINDLASS_COMBINES
#undef WINDLASS_COMBINES_SCALAR
template <typename Dst, typename Src>
WL_CORE_INLINE void TDIVS(Dst& dst, Src& src, typename Src::DType scalar) {
  static_assert(!std::is_integral_v<typename Src::DType>, "TDIVS divides floats here");
  detail::combinedWith("TDIVS", windlass::checked::Op::kDivScalar, dst, src, scalar);
}
template <typename Dst>
WL_CORE_INLINE void TEXPANDS(Dst& dst, typename Dst::DType scalar) {
  fillTile(dst, detail::bitsOf(scalar));
}
template <typename Dst, typename Src>
WL_CORE_INLINE void TMOV(Dst& dst, Src& src) {
  static_assert(detail::oneDType<Dst, Src>, "one dtype");
  moveTile(dst, src);
}

template <typename Dst, typename Src>
WL_CORE_INLINE void TCVT(Dst& dst, Src& src, RoundMode mode) {
  convertTile(dst, src, static_cast<Src*>(nullptr), mode, nullptr);
}
template <typename Dst, typename Src>
WL_CORE_INLINE void TCVT(Dst& dst, Src& src, RoundMode mode, SaturationMode saturation) {
  convertTile(dst, src, static_cast<Src*>(nullptr), mode, &saturation);
}
template <typename Dst, typename Src, typename Scratch>
WL_CORE_INLINE void TCVT(Dst& dst, Src& src, Scratch& scratch, RoundMode mode) {
  convertTile(dst, src, &scratch, mode, nullptr);
}
template <typename Dst, typename Src, typename Scratch>
WL_CORE_INLINE void TCVT(Dst& dst, Src& src, Scratch& scratch, RoundMode mode,
                         SaturationMode saturation) {
  convertTile(dst, src, &scratch, mode, &saturation);
}

}  // namespace pto
