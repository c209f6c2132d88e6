// SPDX-License-Identifier: Apache-2.0
// Declarations for code on the cores of Ascend devices, over the toolkit's own instructions from
// the user's PTO_ISA_ROOT. Kernels use plain pointers; tensors and signals here convert them to
// device memory. This header has been compiled only against declarations of the toolkit's names
// (tests/toolkit), never by the toolkit's compiler.
#pragma once

#define WL_CORE AICORE

#include <pto/pto-inst.hpp>
// Included separately because older toolkits don't include it in pto-inst.hpp.
#include <pto/comm/pto_comm_inst.hpp>

#include <cstdint>
#include <type_traits>

#include "native/isa/limits.h"
#include "native/isa/one_thread.h"
#include "windlass/kernel.h"

namespace windlass {

using namespace pto;

#if defined(WINDLASS_TARGET_A5)
constexpr const Limits& kLimits = kA5Limits;
#else
constexpr const Limits& kLimits = kA2A3Limits;
#endif

constexpr int kGlobalDims = 5;

template <typename T, typename ShapeT, typename StrideT>
struct GlobalTensor : pto::GlobalTensor<std::remove_const_t<T>, ShapeT, StrideT> {
  using Element = std::remove_const_t<T>;
  using Own = pto::GlobalTensor<Element, ShapeT, StrideT>;

  WL_CORE GlobalTensor(T* data, const ShapeT& shape, const StrideT& stride)
      : Own((__gm__ Element*)(data), shape, stride) {}
  WL_CORE Own& own() { return *this; }
};

template <typename TileT, typename T, typename ShapeT, typename StrideT>
WL_CORE inline void TLOAD(TileT& tile, GlobalTensor<T, ShapeT, StrideT>& from) {
  pto::TLOAD(tile, from.own());
}
template <typename TileT, typename T, typename ShapeT, typename StrideT>
WL_CORE inline void TSTORE(GlobalTensor<T, ShapeT, StrideT>& to, TileT& tile) {
  pto::TSTORE(to.own(), tile);
}
template <typename TileT, typename Global, AtomicType kAtomic, typename T, typename ShapeT,
          typename StrideT>
WL_CORE inline void TSTORE(GlobalTensor<T, ShapeT, StrideT>& to, TileT& tile) {
  pto::TSTORE<TileT, typename Global::Own, kAtomic>(to.own(), tile);
}

namespace comm {

using pto::comm::NotifyOp;
using pto::comm::WaitCmp;

struct Signal : pto::comm::Signal {
  WL_CORE explicit Signal(int32_t* word) : pto::comm::Signal((__gm__ int32_t*)(word)) {}
  WL_CORE pto::comm::Signal& own() { return *this; }
};

WL_CORE inline void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) {
  pto::comm::TNOTIFY(signal.own(), value, op);
}
WL_CORE inline bool TTEST(Signal& signal, int32_t value, WaitCmp compare) {
  return pto::comm::TTEST(signal.own(), value, compare);
}
template <typename Dst, typename Src, typename TileT>
WL_CORE inline void TPUT(Dst& to, Src& from, TileT& ping, TileT& pong) {
  pto::comm::TPUT(to.own(), from.own(), ping, pong);
}
template <typename Dst, typename Src, typename TileT>
WL_CORE inline void TGET(Dst& to, Src& from, TileT& ping, TileT& pong) {
  pto::comm::TGET(to.own(), from.own(), ping, pong);
}

}  // namespace comm

// Does nothing: a core has no other thread to run.
WL_CORE inline void relax(bool) {}

// Does nothing: stores are the same in all phases.
class PhaseScope {
 public:
  WL_CORE explicit PhaseScope(const Launch&) {}
};

namespace ascend {

// Offset that TASSIGN gave the tile.
template <typename TileT>
WL_CORE inline uint32_t offsetOf(TileT& tile) {
  return static_cast<uint32_t>((uint64_t)(tile.data()));
}

// Returns 2^exponent as f16.
WL_CORE inline half halfOf(int exponent) {
  float value = 1;
  for (int up = 0; up < exponent; ++up) value *= 2;
  for (int down = 0; down > exponent; --down) value /= 2;
  return static_cast<half>(value);
}

// Does nothing: a core cannot report an error. The host checks the target's limits before it starts
// a kernel.
WL_CORE inline void refuse(const char*, DType) {}

}  // namespace ascend
}  // namespace windlass

// Setup before the first instruction of a core.
#define WL_BEGIN_CORE() \
  set_mask_norm();      \
  set_vector_mask(-1, -1)
#ifndef WL_LAUNCH
#define WL_LAUNCH(kernel, cores, stream, ...) kernel<<<cores, nullptr, stream>>>(__VA_ARGS__)
#endif
