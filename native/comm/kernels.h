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

enum class Executor : uint32_t { kCpu, kDevice };

struct Kernels {
  Limits limits;

  // As its rank's next operation, by each executor.
  Code (*run[2][kKernelCount])(Comm&, const Call&);

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
  return kKernels.run[static_cast<uint32_t>(executor_)][static_cast<uint32_t>(kernel)](*this, call);
}

}  // namespace windlass
