// SPDX-License-Identifier: Apache-2.0
// Movement between global memory and tiles, and between ranks' global memory, on sim.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#include "native/isa/sim/fused.h"
#include "native/isa/sim/types.h"

namespace windlass {
namespace detail {

// dst += src, no element's sum lost to another add. canAccumulate(dst.dtype).
void atomicAdd(const StridedView& dst, const StridedView& src) noexcept;

template <typename Global>
inline StridedView viewOf(const Global& g) noexcept {
  using T = std::remove_const_t<typename Global::Element>;
  return {const_cast<T*>(g.data()), DTypeOf<T>::value, kGlobalDims, g.shape(), g.stride()};
}

template <typename A, typename B>
inline bool sameShape(const A& a, const B& b) noexcept {
  for (int d = 0; d < kGlobalDims; ++d) {
    if (a.GetShape(d) != b.GetShape(d)) return false;
  }
  return true;
}

template <AtomicType atomic, typename T>
inline void store(const StridedView& dst, const StridedView& src) noexcept {
  if constexpr (atomic == AtomicType::Add) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, half> ||
                      std::is_same_v<T, bfloat16_t> || std::is_same_v<T, int32_t> ||
                      std::is_same_v<T, int16_t> || std::is_same_v<T, int8_t>,
                  "atomic add takes f32 f16 bf16 i32 i16 i8");
    atomicAdd(dst, src);
  } else {
    TMOVE_CVT(dst, src);
  }
}

}  // namespace detail

// dst = src, or dst += src. Equal shapes, dtype and layout. The tile sets the staging size on
// targets that stage; here the copy is one pass and leaves it alone.
template <AtomicType atomic = AtomicType::None, typename Dst, typename Src, typename TileT>
inline void TPUT(const Dst& dst, const Src& src, TileT&) noexcept {
  using T = typename Dst::Element;
  static_assert(std::is_same_v<T, std::remove_const_t<typename Src::Element>>, "one dtype");
  static_assert(Dst::kLayout == Src::kLayout, "one layout");
  assert(detail::sameShape(dst, src));
  if constexpr (atomic == AtomicType::None && Dst::kOneRow && Src::kOneRow) {
    const size_t bytes = static_cast<size_t>(src.GetShape(4)) * sizeof(T);
    if (bytes > kShortCopyBytes) {
      detail::putLong(dst.data(), src.data(), bytes);
    } else {
      copyShort(dst.data(), src.data(), bytes);
    }
  } else {
    detail::store<atomic, T>(detail::viewOf(dst), detail::viewOf(src));
  }
}

template <AtomicType atomic = AtomicType::None, typename Dst, typename Src, typename TileT>
inline void TPUT(const Dst& dst, const Src& src, TileT& ping, TileT&) noexcept {
  TPUT<atomic>(dst, src, ping);
}

// dst = src, where src is a peer's.
template <typename Dst, typename Src, typename TileT>
inline void TGET(const Dst& dst, const Src& src, TileT& tile) noexcept {
  TPUT(dst, src, tile);
}

template <typename Dst, typename Src, typename TileT>
inline void TGET(const Dst& dst, const Src& src, TileT& ping, TileT&) noexcept {
  TPUT(dst, src, ping);
}

// The same of views whose dtype and shape are known at run time.
template <AtomicType atomic = AtomicType::None>
inline void TPUT(const StridedView& dst, const StridedView& src) noexcept {
  if constexpr (atomic == AtomicType::Add) {
    detail::atomicAdd(dst, src);
  } else {
    TMOVE_CVT(dst, src);
  }
}
inline void TGET(const StridedView& dst, const StridedView& src) noexcept {
  TMOVE_CVT(dst, src);
}

namespace detail {

// The tile's valid rows and columns as a 5-D view; the rows count dimensions 0 to 3 of `shape`.
struct TileView {
  int64_t shape[kGlobalDims];
  int64_t stride[kGlobalDims];

  template <typename TileT, typename Global>
  TileView(const TileT& tile, const Global& g) noexcept {
    int64_t step = TileT::kCols;
    shape[4] = g.GetShape(4);
    stride[4] = 1;
    for (int d = 3; d >= 0; --d) {
      shape[d] = g.GetShape(d);
      stride[d] = step;
      step *= shape[d];
    }
    assert(tile.GetValidCol() == shape[4]);
    assert(tile.GetValidRow() == shape[0] * shape[1] * shape[2] * shape[3]);
    (void)tile;
  }

  template <typename TileT>
  StridedView view(const TileT& tile) const noexcept {
    return {tile.data(), DTypeOf<typename TileT::Element>::value, kGlobalDims, shape, stride};
  }
};

}  // namespace detail

// Valid rows and columns of the tile = the tensor; its dimensions 0 to 3 together count the rows.
template <typename TileT, typename Global>
inline void TLOAD(const TileT& tile, const Global& src) noexcept {
  static_assert(
      std::is_same_v<typename TileT::Element, std::remove_const_t<typename Global::Element>>,
      "one dtype");
  const detail::TileView local(tile, src);
  TMOVE_CVT(local.view(tile), detail::viewOf(src));
}

template <AtomicType atomic = AtomicType::None, typename Global, typename TileT>
inline void TSTORE(const Global& dst, const TileT& tile) noexcept {
  static_assert(std::is_same_v<typename TileT::Element, typename Global::Element>, "one dtype");
  const detail::TileView local(tile, dst);
  detail::store<atomic, typename Global::Element>(detail::viewOf(dst), local.view(tile));
}

}  // namespace windlass
