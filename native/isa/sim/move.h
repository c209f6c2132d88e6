// SPDX-License-Identifier: Apache-2.0
// Movement between global memory and tiles, and between ranks' global memory, on sim.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

template <pto::AtomicType kAtomic, typename T>
inline void store(const StridedView& dst, const StridedView& src) noexcept {
  if constexpr (kAtomic == pto::AtomicType::AtomicAdd) {
    static_assert(kAddsAtomically<T>, "atomic add takes f32 f16 bf16 i32 i16 i8");
    atomicAdd(dst, src);
  } else {
    TMOVE_CVT(dst, src);
  }
}

// Returns true if the tensor has the valid sizes of the tile. Dimensions 0 to 3 of the tensor
// together count the tile's rows.
template <typename TileT, typename Global>
bool fitsTile(TileT& tile, Global& g) noexcept {
  const int64_t rows = g.GetShape(0) * g.GetShape(1) * g.GetShape(2) * g.GetShape(3);
  return fits(tile.GetValidCol() == g.GetShape(4) && tile.GetValidRow() == rows,
              TileMisuse::kMoved);
}

}  // namespace detail
}  // namespace windlass

namespace pto {
inline namespace sim {

// Loads the tensor into the valid part of the tile. Dimensions 0 to 3 of the tensor together count
// the tile's rows.
template <typename TileT, typename Global>
inline void TLOAD(TileT& tile, Global& src) noexcept {
  static_assert(std::is_same_v<typename TileT::DType, typename Global::RawDType>, "one dtype");
  using namespace windlass::detail;
  if (!fitsTile(tile, src)) return;
  const windlass::StridedView from = src.view();
  const windlass::checked::TileView local(unifiedBuffer(), refOf(tile), from.shape);
  windlass::TMOVE_CVT(local.view, from);
}

template <typename TileT, typename Global, AtomicType kAtomic>
inline void TSTORE(Global& dst, TileT& tile) noexcept {
  static_assert(std::is_same_v<typename TileT::DType, typename Global::DType>, "one dtype");
  using namespace windlass::detail;
  if (!fitsTile(tile, dst)) return;
  const windlass::StridedView to = dst.view();
  const windlass::checked::TileView local(unifiedBuffer(), refOf(tile), to.shape);
  store<kAtomic, typename Global::DType>(to, local.view);
}
template <typename Global, typename TileT>
inline void TSTORE(Global& dst, TileT& tile) noexcept {
  TSTORE<TileT, Global, AtomicType::AtomicNone>(dst, tile);
}

}  // namespace sim

namespace comm {
inline namespace sim {

// dst = src, or dst += src. Equal shapes, dtype and layout. The copy is one pass and doesn't use
// the tiles, which are staging buffers on other targets.
template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
inline void TPUT(Dst& dst, Src& src, TileT&) noexcept {
  using T = typename Dst::DType;
  static_assert(std::is_same_v<T, typename Src::RawDType>, "one dtype");
  static_assert(std::is_same_v<T, typename TileT::DType>, "the tile's dtype is the tensors'");
  static_assert(Dst::layout == Src::layout, "one layout");
  if (!windlass::detail::fits(detail::sameShape(dst, src), windlass::TileMisuse::kShapes)) return;
  if constexpr (kAtomic == AtomicType::AtomicNone && Dst::kOneRow && Src::kOneRow) {
    const size_t bytes = static_cast<size_t>(src.GetShape(4)) * sizeof(T);
    if (bytes > windlass::kShortCopyBytes) {
      windlass::detail::putLong(dst.data(), src.data(), bytes);
    } else {
      windlass::copyShort(dst.data(), src.data(), bytes);
    }
  } else {
    windlass::detail::store<kAtomic, T>(dst.view(), src.view());
  }
}
template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
inline void TPUT(Dst& dst, Src& src, TileT& ping, TileT&) noexcept {
  TPUT<kAtomic>(dst, src, ping);
}

// dst = src. src is memory of a peer.
template <typename Dst, typename Src, typename... Tiles>
inline void TGET(Dst& dst, Src& src, Tiles&... tiles) noexcept {
  TPUT(dst, src, tiles...);
}

}  // namespace sim
}  // namespace comm
}  // namespace pto
