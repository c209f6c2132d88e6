// SPDX-License-Identifier: Apache-2.0
// Arithmetic of native/isa/arithmetic.h on sim: element by element over the valid rows and columns.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "native/isa/arithmetic.h"
#include "native/isa/checked/arithmetic.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

// Returns true if two tiles of one instruction have the same valid sizes.
template <typename A, typename B>
bool areAlike(A& a, B& b) noexcept {
  return fits(a.GetValidRow() == b.GetValidRow() && a.GetValidCol() == b.GetValidCol(),
              TileMisuse::kUnalike);
}

}  // namespace detail
}  // namespace windlass

namespace pto {
inline namespace sim {

// The following functions have the arithmetic of the checked targets.
template <typename Dst, typename A, typename B>
void combineTiles(const char*, windlass::checked::Op op, Dst& dst, A& a, B& b) {
  using namespace windlass::detail;
  if (op != windlass::checked::Op::kSub && !(areAlike(dst, a) && areAlike(dst, b))) return;
  windlass::checked::combine(unifiedBuffer(), op, refOf(dst), refOf(a), refOf(b));
}
template <typename Dst, typename Src>
void combineTileScalar(const char*, windlass::checked::Op op, Dst& dst, Src& src,
                       uint64_t scalar) {
  using namespace windlass::detail;
  windlass::checked::combineScalar(unifiedBuffer(), op, refOf(dst), refOf(src), scalar);
}
template <typename Dst>
void fillTile(Dst& dst, uint64_t scalar) {
  using namespace windlass::detail;
  windlass::checked::fill(unifiedBuffer(), refOf(dst), scalar);
}
template <typename Dst, typename Src>
void moveTile(Dst& dst, Src& src) {
  using namespace windlass::detail;
  if (areAlike(dst, src)) windlass::checked::move(unifiedBuffer(), refOf(dst), refOf(src));
}

// dst = cast(src), with the modes and the saturation of A5. A cast between floats to nearest even
// is that of TMOVE_CVT: overflow becomes infinity if the type has one. sim needs no scratch.
template <typename Dst, typename Src, typename Scratch>
void convertTile(Dst& dst, Src& src, Scratch*, RoundMode mode,
                 const SaturationMode* saturation) {
  using namespace windlass::detail;
  constexpr windlass::DType kFrom = windlass::DTypeOf<typename Src::DType>::value;
  constexpr windlass::DType kTo = windlass::DTypeOf<typename Dst::DType>::value;
  const bool isNearest = mode == RoundMode::CAST_RINT || mode == RoundMode::CAST_NONE;
  if (isNearest && isFloat(kFrom) && isFloat(kTo)) return moveTile(dst, src);
  if (!areAlike(dst, src)) return;
  if (!windlass::hasRoundMode(kFrom, kTo, mode)) {
    std::fputs("TCVT on sim has CAST_ODD from f32 to f16 alone\n", stderr);
    std::abort();
  }
  windlass::checked::convert(
      unifiedBuffer(), refOf(dst), refOf(src),
      windlass::checked::conversionOf(windlass::checked::kA5, kFrom, kTo, mode, saturation));
}

}  // namespace sim
}  // namespace pto
