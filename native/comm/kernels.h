// SPDX-License-Identifier: Apache-2.0
// The kernels of the target that this library is built for, as the runtime calls them: made once,
// by kernels/entry.cpp, so that nothing else knows which target it is.
#pragma once

#include "native/comm/comm.h"

namespace windlass {

// Staged: inputs small enough to ride with ENTER.
enum class Kernel : uint32_t {
  kAllToAllPush,
  kAllToAllPull,
  kAllToAllStaged,
  kBroadcast,
  kBroadcastStaged,
  kAllGather,
  kAllGatherStaged,
  kReduceScatter,
  kReduceScatterStaged,
  kAllReduceOnePhase,
  kAllReduceTwoPhase,
  kAllReduceRing,
  kAllReduceBidirectionalRing,
  kAllReduceStaged,
  kScatter,
  kGather,
  kReduce,
  kReduceStaged,
  kAllToAllV,
  kAllToAllVPacked,
  kAllGatherV,
  kAllGatherVStaged,
  kReduceScatterV,
  kReduceScatterVStaged,
  kBarrier,
  kRedistribute,
};
constexpr uint32_t kKernelCount = static_cast<uint32_t>(Kernel::kRedistribute) + 1;

// A kernel as the device executor runs it.
struct InLineKernel {
  bool staged;
  void (*plan)(Launch& launch);
  uint32_t (*phases)(const Launch& launch);
  // Goes on with one core's part; whether it is over.
  bool (*run)(const Launch& launch, const InLine& own, Position& at);
};

struct Kernels {
  Limits limits;

  // As its rank's next operation, by the cpu executor.
  Code (*onCpu[kKernelCount])(Comm&, const Call&);
  InLineKernel inLine[kKernelCount];

  // What one thread does by itself; native/isa/isa.h says what each promises.
  void (*copy)(void* dst, const void* src, size_t bytes);
  void (*move)(const StridedView* dst, uint32_t ndst, const StridedView& src, DType wire,
               Stores stores);
  void (*fold)(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
               ReduceOp op, DType wire, Stores stores);

  // One-sided; kernels/one_sided.h.
  void (*put)(const StridedView& remote, const StridedView& local);
  void (*accumulate)(const StridedView& remote, const StridedView& local);
  void (*get)(const StridedView& local, const StridedView& remote);
  void (*notify)(uint32_t* signal, uint32_t value);

  // The code path in use, of those that the target has, and nullptr or why it is not the one that
  // was asked for.
  const char* (*path)();
  const char* (*pathError)();
};

extern const Kernels kKernels;

inline Code Comm::run(Kernel kernel, const Call& call) {
  const auto index = static_cast<uint32_t>(kernel);
  return inLine_ ? runInLine(kKernels.inLine[index], call) : kKernels.onCpu[index](*this, call);
}

}  // namespace windlass
