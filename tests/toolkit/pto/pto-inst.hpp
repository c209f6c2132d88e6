// SPDX-License-Identifier: Apache-2.0
// Names of the Ascend toolkit as its public documentation gives them, declared for an ordinary
// compiler, with nothing behind them: what kernels/launcher.cpp is checked against without one.
#pragma once

#include <cstdint>

#define AICORE
#define __global__
#define __gm__

struct half {
  half() = default;
  explicit half(float) {}
};
struct bfloat16_t {};
struct float8_e4m3_t {};
struct float8_e5m2_t {};

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3 };
enum mem_dsb_t { DSB_ALL, DSB_DDR };
inline void set_flag(pipe_t, pipe_t, event_t) {}
inline void wait_flag(pipe_t, pipe_t, event_t) {}
inline void pipe_barrier(pipe_t) {}
inline void dsb(mem_dsb_t) {}
inline int64_t get_block_idx() {
  return 0;
}
inline void set_mask_norm() {}
inline void set_vector_mask(uint64_t, uint64_t) {}

namespace pto {

constexpr int DYNAMIC = -1;
enum class TileType { Vec, Mat, Left, Right, Acc };
enum class BLayout { RowMajor = 0, ColMajor = 1 };
enum class SLayout { NoneBox = 0, RowMajor = 1, ColMajor = 2 };
enum class Layout { ND, DN, NZ };
enum class PadValue { Null = 0, Zero = 1, Max = 2, Min = 3 };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode { ON = 0, OFF = 1 };
enum class AtomicType : uint8_t { AtomicNone = 0, AtomicAdd = 1 };
struct RecordEvent {};

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape {
  static constexpr int kDynamic = (N1 == DYNAMIC) + (N2 == DYNAMIC) + (N3 == DYNAMIC) +
                                  (N4 == DYNAMIC) + (N5 == DYNAMIC);
  Shape() {}
  template <typename... Sizes>
  Shape(int64_t, Sizes...) {
    static_assert(sizeof...(Sizes) + 1 == 5 || sizeof...(Sizes) + 1 == kDynamic,
                  "all sizes, or the dynamic ones");
  }
  int64_t shape[5] = {};
};
template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Stride : Shape<N1, N2, N3, N4, N5> {
  using Shape<N1, N2, N3, N4, N5>::Shape;
};
template <typename Element, typename ShapeT, typename StrideT, Layout kLayout = Layout::ND>
struct GlobalTensor {
  using RawDType = Element;
  using DType = __gm__ Element;
  static constexpr Layout layout = kLayout;
  explicit GlobalTensor(__gm__ Element*, const ShapeT& = ShapeT(), const StrideT& = StrideT()) {}
};
template <TileType, typename Element, int kRows, int kCols, BLayout = BLayout::RowMajor,
          int kValidRow = kRows, int kValidCol = kCols, SLayout = SLayout::NoneBox, int = 512,
          PadValue = PadValue::Null>
struct Tile {
  using DType = Element;
  static constexpr int Rows = kRows;
  static constexpr int Cols = kCols;
  static_assert(kValidRow <= kRows && kValidCol <= kCols, "what is valid is in the tile");
  static_assert(kCols * sizeof(Element) % 32 == 0, "a row is a multiple of 32 bytes");
  Tile() {}
  explicit Tile(int) {
    static_assert((kValidRow == DYNAMIC) != (kValidCol == DYNAMIC), "one size is dynamic");
  }
  Tile(int, int) {
    static_assert(kValidRow == DYNAMIC && kValidCol == DYNAMIC, "both sizes are dynamic");
  }
  Element* data() { return nullptr; }
};

template <typename TileT, typename Address>
void TASSIGN(TileT&, Address) {}
template <typename TileT, typename Global, typename... Events>
RecordEvent TLOAD(TileT&, Global&, Events&...) {
  static_assert(sizeof(typename TileT::DType) == sizeof(typename Global::RawDType), "of one size");
  return {};
}
template <typename TileT, typename Global, AtomicType = AtomicType::AtomicNone, typename... Events>
RecordEvent TSTORE(Global&, TileT&, Events&...) {
  static_assert(sizeof(typename TileT::DType) == sizeof(typename Global::RawDType), "of one size");
  return {};
}
template <typename Dst, typename Src, typename... Events>
RecordEvent TCVT(Dst&, Src&, RoundMode, Events&...) {
  return {};
}
template <typename Dst, typename Src, typename... Events>
RecordEvent TCVT(Dst&, Src&, RoundMode, SaturationMode, Events&...) {
  return {};
}
#define TOOLKIT_OF_TILES(name)                                  \
  template <typename TileT, typename... Events>                 \
  RecordEvent name(TileT&, TileT&, TileT&, Events&...) {        \
    return {};                                                  \
  }
TOOLKIT_OF_TILES(TADD)
TOOLKIT_OF_TILES(TSUB)
TOOLKIT_OF_TILES(TMUL)
TOOLKIT_OF_TILES(TMAX)
TOOLKIT_OF_TILES(TMIN)
#undef TOOLKIT_OF_TILES
#define TOOLKIT_BY_SCALAR(name)                                              \
  template <typename TileT, typename... Events>                              \
  RecordEvent name(TileT&, TileT&, typename TileT::DType, Events&...) {      \
    return {};                                                               \
  }
TOOLKIT_BY_SCALAR(TADDS)
TOOLKIT_BY_SCALAR(TSUBS)
TOOLKIT_BY_SCALAR(TMULS)
TOOLKIT_BY_SCALAR(TMAXS)
TOOLKIT_BY_SCALAR(TMINS)
TOOLKIT_BY_SCALAR(TDIVS)
#undef TOOLKIT_BY_SCALAR
template <typename TileT, typename... Events>
RecordEvent TEXPANDS(TileT&, typename TileT::DType, Events&...) {
  return {};
}

}  // namespace pto
