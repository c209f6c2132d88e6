// SPDX-License-Identifier: Apache-2.0
// The tile vocabulary with nothing behind it, marked for a device throughout: what kernels may use.
// Stands in the place of native/isa/isa.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/isa/one_thread.h"
#include "windlass/kernel.h"

#define STUB WL_CORE inline

enum pipe_t { PIPE_ALL };
enum mem_dsb_t { DSB_DDR };
STUB void pipe_barrier(pipe_t) {}
STUB void dsb(mem_dsb_t) {}

namespace pto {

constexpr int DYNAMIC = -1;
enum class TileType { Vec };
enum class BLayout { RowMajor };

template <int64_t...>
struct Shape {
  WL_CORE explicit Shape(int64_t) {}
  WL_CORE Shape(int64_t, int64_t) {}
};
template <int64_t...>
struct Stride {
  WL_CORE Stride(int64_t, int64_t, int64_t, int64_t) {}
};
template <typename T, typename ShapeT, typename StrideT>
struct GlobalTensor {
  WL_CORE GlobalTensor(T*, ShapeT, StrideT) {}
};
template <TileType, typename T, int kRows, int kCols, BLayout = BLayout::RowMajor,
          int kValidRow = kRows, int kValidCol = kCols>
struct Tile {
  static constexpr int Cols = kCols;
  WL_CORE Tile() {}
  WL_CORE explicit Tile(int64_t) {}
};
template <typename TileT>
STUB void TASSIGN(TileT&, uint64_t) {}

namespace comm {
enum class NotifyOp { AtomicAdd, Set };
enum class WaitCmp { EQ, NE, GT, GE, LT, LE };
struct Signal {
  WL_CORE explicit Signal(int32_t*) {}
};
STUB void TNOTIFY(Signal&, int32_t, NotifyOp) {}
STUB bool TTEST(Signal&, int32_t, WaitCmp) {
  return true;
}
template <typename Dst, typename Src, typename TileT>
STUB void TPUT(Dst&, Src&, TileT&, TileT&) {}
template <typename Dst, typename Src, typename TileT>
STUB void TGET(Dst&, Src&, TileT&, TileT&) {}
}  // namespace comm

}  // namespace pto

namespace windlass {

using namespace pto;

STUB void relax(bool) {}
struct PhaseScope {
  WL_CORE explicit PhaseScope(const Launch&) {}
};

struct Views {};
template <typename At>
STUB Views viewsAt(uint32_t count, const At& at) {
  if (count > 0) at(0);
  return {};
}
template <typename TileT>
STUB void TMOVE_CVT(const StridedView&, const StridedView&, TileT&) {}
template <typename TileT>
STUB void TMOVE_ADD(const StridedView&, const StridedView&, TileT&) {}
template <typename TileT>
STUB void TMOVE_CVT(const StridedView&, const StridedView&, DType, TileT&,
                    Stores = Stores::kByOperation) {}
template <typename TileT>
STUB void TMOVE_CVT(const Views&, const StridedView&, DType, TileT&,
                    Stores = Stores::kByOperation) {}
template <typename TileT>
STUB void TFOLD(const Views&, const Views&, ReduceOp, DType, TileT&,
                Stores = Stores::kByOperation) {}

struct Rows {};
template <typename At>
STUB Rows rowsAt(uint32_t count, const At& at) {
  if (count > 0) at(0);
  return {};
}
template <typename TileT>
STUB void TFOLD(const Rows&, const Rows&, int64_t, DType, ReduceOp, uint32_t, TileT&,
                Stores = Stores::kByOperation) {}
template <typename Weight, typename TileT>
STUB void TFOLD_WEIGHTED(const Rows&, const Rows&, const Weight& weight, int64_t, DType, TileT&,
                         Stores = Stores::kByOperation) {
  weight(0);
}
template <typename TileT>
STUB void TQUANT(const Rows&, const Rows&, const void*, int64_t, DType, TileT&,
                 Stores = Stores::kByOperation) {}

}  // namespace windlass
