// SPDX-License-Identifier: Apache-2.0
// Movement between ranks' memory, and tile instructions, for the lead of a core. Each instruction
// describes a job. A library's kernel runs them in call order: each starts when the earlier ones
// are done. Its tiles are in the device's memory, where each core has as many bytes as kLimits
// says.
#pragma once

#include <type_traits>

#include "native/isa/arithmetic.h"
#include "native/isa/cuda/tile_work.h"

namespace windlass::cuda {

#if defined(WINDLASS_IN_KERNEL_LIBRARY)
constexpr bool kOfLibrary = true;
#else
constexpr bool kOfLibrary = false;
#endif

// Tile memory and error handler of a core that runs a library's kernel.
struct CoreTiles {
  unsigned char* memory;
  const Misuses* misuses;
};
WL_CORE_INLINE CoreTiles& coreTiles() {
  __shared__ CoreTiles own;
  return own;
}

// Reports a misuse. Returns false.
WL_CORE_APART inline bool misused(TileMisuse::What what, int64_t a, int64_t b) {
  const Misuses* misuses = coreTiles().misuses;
  misuses->tell(misuses, {Misuse::kTile, 0, 0, {what, a, b}});
  return false;
}

// Returns true if the tile's offset and valid sizes are allowed. Otherwise reports a misuse.
template <typename TileT>
WL_CORE_INLINE bool isThere(const TileT& tile) {
  if (tile.offset < 0 || tile.offset > TileT::kMost || tile.offset % 32 != 0)
    return misused(TileMisuse::kPlaced, tile.offset, TileT::kMost);
  const bool isSized = tile.validRows >= 0 && tile.validRows <= TileT::Rows &&
                       tile.validColumns >= 0 && tile.validColumns <= TileT::Cols;
  return isSized || misused(TileMisuse::kSized, tile.validRows, tile.validColumns);
}
template <typename A, typename B>
WL_CORE_INLINE bool areAlike(const A& a, const B& b) {
  const bool alike = a.validRows == b.validRows && a.validColumns == b.validColumns;
  return isThere(a) && isThere(b) && (alike || misused(TileMisuse::kUnalike, 0, 0));
}

// The valid part of a tile.
template <typename TileT>
struct TileArea {
  int64_t shape[2];
  int64_t strides[2];
  void* data;

  WL_CORE_INLINE explicit TileArea(const TileT& tile)
      : shape{tile.validRows, tile.validColumns},
        strides{TileT::Cols, 1},
        data(coreTiles().memory + tile.offset) {}
  WL_CORE_INLINE StridedView view() const {
    return {data, DTypeOf<typename TileT::DType>::value, 2, shape, strides};
  }
};
// The valid part in the shape of a tensor. Dimensions 0 to 3 count the tile's rows.
template <typename TileT, typename Global>
struct TileRows {
  int64_t shape[kGlobalDims];
  int64_t strides[kGlobalDims];
  void* data;
  bool fit;

  WL_CORE_INLINE TileRows(const TileT& tile, Global& tensor)
      : data(coreTiles().memory + tile.offset) {
    int64_t step = TileT::Cols;
    int64_t rows = 1;
    shape[kGlobalDims - 1] = tensor.GetShape(kGlobalDims - 1);
    strides[kGlobalDims - 1] = 1;
    for (int d = kGlobalDims - 2; d >= 0; --d) {
      shape[d] = tensor.GetShape(d);
      strides[d] = step;
      step *= shape[d];
      rows *= shape[d];
    }
    const bool isLike = tile.validRows == rows && tile.validColumns == shape[kGlobalDims - 1];
    fit = isThere(tile) && (isLike || misused(TileMisuse::kMoved, 0, 0));
  }
  WL_CORE_INLINE StridedView view() const {
    return {data, DTypeOf<typename TileT::DType>::value, kGlobalDims, shape, strides};
  }
};

template <pto::AtomicType kAtomic, typename T, typename TileT>
WL_CORE_INLINE void storeViews(const StridedView& dst, const StridedView& src, TileT& tile) {
  if constexpr (kAtomic == pto::AtomicType::AtomicAdd) {
    static_assert(kAddsAtomically<T>, "atomic add takes f32 f16 bf16 i32 i16 i8");
    instructions::TMOVE_ADD(dst, src, tile);
  } else {
    instructions::TMOVE_CVT(dst, src, tile);
  }
}

template <typename Dst, typename A, typename B>
WL_CORE inline void foldTiles(Dst& dst, A& a, B& b, ReduceOp op) {
  finish();
  if (!areAlike(dst, a) || !areAlike(dst, b)) return;
  const TileArea<Dst> out(dst);
  const TileArea<A> left(a);
  const TileArea<B> right(b);
  const auto to = [&](uint32_t) { return out.view(); };
  const auto from = [&](uint32_t s) { return s == 0 ? left.view() : right.view(); };
  instructions::TFOLD(instructions::viewsAt(1, to), instructions::viewsAt(2, from), op,
                      DTypeOf<typename Dst::DType>::value, dst);
}

// Submits a job on tiles: dst and the first `sources` of a and b. work() runs each thread's part.
template <typename Dst, typename A, typename B>
WL_CORE inline void workOnTiles(Dst& dst, A& a, B& b, uint32_t sources, Work work, uint64_t scalar,
                                pto::RoundMode mode = pto::RoundMode::CAST_NONE,
                                bool saturates = false) {
  finish();
  if (!areAlike(dst, a) || !areAlike(dst, b)) return;
  Job* job = instructions::beginJob(JobKind::kTile, 1, sources, DTypeOf<typename A::DType>::value,
                                    DTypeOf<typename Dst::DType>::value);
  job->work = work;
  job->scalar = scalar;
  job->mode = mode;
  job->saturates = saturates;
  job->put(0, TileArea<Dst>(dst).view());
  if (sources > 0) job->put(1, TileArea<A>(a).view());
  if (sources > 1) job->put(2, TileArea<B>(b).view());
  instructions::submitViews(job);
}

template <typename TileT>
using ElementOf = Element<DTypeOf<typename TileT::DType>::value>;

}  // namespace windlass::cuda

namespace pto {

template <typename TileT, typename Global>
WL_CORE inline void TLOAD(TileT& tile, Global& src) {
  static_assert(std::is_same_v<typename TileT::DType, typename Global::RawDType>, "one dtype");
  windlass::cuda::finish();
  const windlass::cuda::TileRows<TileT, Global> local(tile, src);
  if (local.fit) windlass::cuda::instructions::TMOVE_CVT(local.view(), src.view(), tile);
}
template <typename TileT, typename Global, AtomicType kAtomic>
WL_CORE inline void TSTORE(Global& dst, TileT& tile) {
  using T = typename Global::DType;
  static_assert(std::is_same<typename TileT::DType, T>::value, "one dtype");
  windlass::cuda::finish();
  const windlass::cuda::TileRows<TileT, Global> local(tile, dst);
  if (local.fit) windlass::cuda::storeViews<kAtomic, T>(dst.view(), local.view(), tile);
}
template <typename Global, typename TileT>
WL_CORE inline void TSTORE(Global& dst, TileT& tile) {
  TSTORE<TileT, Global, AtomicType::AtomicNone>(dst, tile);
}

// ---- arithmetic: native/isa/arithmetic.h

template <typename Dst, typename A, typename B>
WL_CORE_INLINE void combineTiles(const char*, windlass::checked::Op op, Dst& dst, A& a, B& b) {
  using namespace windlass::cuda;
  if (op == windlass::checked::Op::kSub) {
    workOnTiles(dst, a, b, 2, subtractTiles<ElementOf<Dst>>, 0);
  } else {
    foldTiles(dst, a, b, reduceOpOf(op));
  }
}
template <typename Dst, typename Src>
WL_CORE_INLINE void combineTileScalar(const char*, windlass::checked::Op op, Dst& dst, Src& src,
                                      uint64_t scalar) {
  using namespace windlass::cuda;
  using E = ElementOf<Dst>;
  Work work = divideByScalar<E>;
  if (op == windlass::checked::Op::kAddScalar) work = combineScalar<E, windlass::ReduceOp::kSum>;
  if (op == windlass::checked::Op::kMulScalar)
    work = combineScalar<E, windlass::ReduceOp::kProduct>;
  workOnTiles(dst, src, src, 1, work, scalar);
}
template <typename Dst>
WL_CORE_INLINE void fillTile(Dst& dst, uint64_t scalar) {
  using namespace windlass::cuda;
  workOnTiles(dst, dst, dst, 0, windlass::cuda::fillTile<ElementOf<Dst>>, scalar);
}
template <typename Dst, typename Src>
WL_CORE_INLINE void moveTile(Dst& dst, Src& src) {
  using namespace windlass::cuda;
  finish();
  if (!areAlike(dst, src)) return;
  instructions::TMOVE_CVT(TileArea<Dst>(dst).view(), TileArea<Src>(src).view(), dst);
}
// dst = cast(src), with the modes and the saturation of A5. This target needs no scratch tile.
template <typename Dst, typename Src, typename Scratch>
WL_CORE_INLINE void convertTile(Dst& dst, Src& src, Scratch*, RoundMode mode,
                                const SaturationMode* saturation) {
  constexpr windlass::DType kFrom = windlass::DTypeOf<typename Src::DType>::value;
  constexpr windlass::DType kTo = windlass::DTypeOf<typename Dst::DType>::value;
  const RoundMode how = windlass::roundModeOf(kFrom, kTo, mode);
  if (isFloat(kFrom) && isFloat(kTo) && how == RoundMode::CAST_RINT) return moveTile(dst, src);
  const bool saturates = saturation == nullptr ? !windlass::castWraps(kFrom, kTo)
                                               : *saturation == SaturationMode::ON;
  windlass::cuda::workOnTiles(dst, src, src, 1, windlass::cuda::convertTile<kFrom, kTo>, 0, how,
                              saturates);
}

namespace comm {

// dst = src, or dst += src. The tiles are unused: they are staging buffers on other targets.
template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
WL_CORE_INLINE void TPUT(Dst& dst, Src& src, TileT& tile) {
  using T = typename Dst::DType;
  static_assert(std::is_same<T, typename Src::RawDType>::value, "one dtype");
  if constexpr (windlass::cuda::kOfLibrary) {
    windlass::cuda::finish();
    if (!detail::sameShape(dst, src)) {
      windlass::cuda::misused(windlass::TileMisuse::kShapes, 0, 0);
      return;
    }
  }
  if constexpr (kAtomic == AtomicType::AtomicNone && Dst::kOneRow && Src::kOneRow) {
    windlass::cuda::instructions::copyBytes(
        dst.data(), src.data(),
        static_cast<uint64_t>(src.GetShape(windlass::kGlobalDims - 1)) * sizeof(T));
  } else {
    windlass::cuda::storeViews<kAtomic, T>(dst.view(), src.view(), tile);
  }
}
template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
WL_CORE_INLINE void TPUT(Dst& dst, Src& src, TileT& ping, TileT&) {
  TPUT<kAtomic>(dst, src, ping);
}
// dst = src. src is memory of a peer.
template <typename Dst, typename Src, typename... Tiles>
WL_CORE_INLINE void TGET(Dst& dst, Src& src, Tiles&... tiles) {
  TPUT(dst, src, tiles...);
}

}  // namespace comm
}  // namespace pto
