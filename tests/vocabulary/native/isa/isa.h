// SPDX-License-Identifier: Apache-2.0
// The tile vocabulary with nothing behind it, marked for a device throughout: what kernels may use.
// Stands in the place of native/isa/isa.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "windlass/kernel.h"

#define STUB WL_CORE inline

namespace windlass {

constexpr int64_t DYNAMIC = -1;
enum class Loc { Vec };
enum class BLayout { RowMajor };
enum class AtomicType { None, Add };
enum pipe_t { PIPE_ALL };
enum mem_dsb_t { DSB_DDR };

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
template <Loc, typename T, int64_t Rows, int64_t Columns, BLayout, int64_t ValidRows,
          int64_t ValidColumns>
struct Tile {
  WL_CORE Tile() {}
};

namespace comm {
enum class NotifyOp { AtomicAdd, Set };
enum class WaitCmp { EQ, NE, GT, GE, LT, LE };
struct Signal {
  WL_CORE explicit Signal(int32_t*) {}
  WL_CORE explicit Signal(uint32_t*) {}
};
}  // namespace comm

STUB void pipe_barrier(pipe_t) {}
STUB void dsb(mem_dsb_t) {}
STUB void relax(bool) {}
STUB void TNOTIFY(const comm::Signal&, int32_t, comm::NotifyOp) {}
STUB bool TTEST(const comm::Signal&, int32_t, comm::WaitCmp) {
  return true;
}

template <AtomicType atomic = AtomicType::None, typename Dst, typename Src, typename TileT>
STUB void TPUT(const Dst&, const Src&, TileT&) {}
template <typename Dst, typename Src, typename TileT>
STUB void TGET(const Dst&, const Src&, TileT&) {}
template <AtomicType atomic = AtomicType::None>
STUB void TPUT(const StridedView&, const StridedView&) {}
STUB void TGET(const StridedView&, const StridedView&) {}

struct Views {};
template <typename At>
STUB Views viewsAt(uint32_t count, const At& at) {
  if (count > 0) at(0);
  return {};
}
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

}  // namespace windlass
