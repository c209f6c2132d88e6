// SPDX-License-Identifier: Apache-2.0
// The table of kernels of one target: here alone they are instantiated, once for each executor.
#include "kernels/all_gather.h"
#include "kernels/all_gather_v.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/all_to_all_v.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/chunk.h"
#include "kernels/in_line.h"
#include "kernels/one_sided.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scatter.h"
#include "native/comm/cpu_executor.h"
#include "native/comm/device_executor.h"
#include "native/comm/kernels.h"

namespace windlass {
namespace {

// A phase within what its macro-instructions have in common.
template <class K>
struct Scoped : K {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    const PhaseScope scope(launch);
    K::phase(launch, rank, block, k);
  }
};

template <class K>
Code onCpu(Comm& comm, const Call& call) {
  return comm.run<Scoped<K>>(call);
}

template <class K>
struct InLineKernel : Scoped<K> {
  static bool goOn(const Launch& launch, const InLine& own, Position& at) {
    return runInLine<Scoped<K>>(launch, own, at);
  }
};

template <class K>
Code onDevice(Comm& comm, const Call& call) {
  return comm.runInLine<InLineKernel<K>>(call);
}

template <class K>
constexpr void set(Kernels& kernels, Kernel kernel) {
  const auto index = static_cast<uint32_t>(kernel);
  kernels.run[static_cast<uint32_t>(Executor::kCpu)][index] = onCpu<K>;
  kernels.run[static_cast<uint32_t>(Executor::kDevice)][index] = onDevice<K>;
}

constexpr Kernels makeKernels() {
  Kernels kernels = {};
  set<AllToAllPush>(kernels, Kernel::kAllToAllPush);
  set<AllToAllPull>(kernels, Kernel::kAllToAllPull);
  set<Staged<AllToAllPull>>(kernels, Kernel::kAllToAllStaged);
  set<Broadcast>(kernels, Kernel::kBroadcast);
  set<Staged<Broadcast>>(kernels, Kernel::kBroadcastStaged);
  set<AllGather>(kernels, Kernel::kAllGather);
  set<Staged<AllGatherPull>>(kernels, Kernel::kAllGatherStaged);
  set<ReduceScatter>(kernels, Kernel::kReduceScatter);
  set<Staged<ReduceScatter>>(kernels, Kernel::kReduceScatterStaged);
  set<AllReduceOnePhase>(kernels, Kernel::kAllReduceOnePhase);
  set<AllReduceTwoPhase>(kernels, Kernel::kAllReduceTwoPhase);
  set<AllReduceRing>(kernels, Kernel::kAllReduceRing);
  set<AllReduceBidirectionalRing>(kernels, Kernel::kAllReduceBidirectionalRing);
  set<Staged<AllReduceOnePhase>>(kernels, Kernel::kAllReduceStaged);
  set<Scatter>(kernels, Kernel::kScatter);
  set<Gather>(kernels, Kernel::kGather);
  set<Reduce>(kernels, Kernel::kReduce);
  set<Staged<Reduce>>(kernels, Kernel::kReduceStaged);
  set<AllToAllV>(kernels, Kernel::kAllToAllV);
  set<AllToAllVPacked>(kernels, Kernel::kAllToAllVPacked);
  set<AllGatherV>(kernels, Kernel::kAllGatherV);
  set<Staged<AllGatherVPull>>(kernels, Kernel::kAllGatherVStaged);
  set<ReduceScatterV>(kernels, Kernel::kReduceScatterV);
  set<Staged<ReduceScatterV>>(kernels, Kernel::kReduceScatterVStaged);
  set<Barrier>(kernels, Kernel::kBarrier);
  set<Redistribute>(kernels, Kernel::kRedistribute);
  kernels.limits = kLimits;
  kernels.copy = copyBytes;
  kernels.move = TMOVE_CVT;
  kernels.fold = TFOLD;
  kernels.put = oneSidedPut;
  kernels.accumulate = oneSidedAccumulate;
  kernels.get = oneSidedGet;
  kernels.notify = oneSidedNotify;
  kernels.path = isaPathName;
  kernels.pathError = isaPathError;
  return kernels;
}

}  // namespace

constexpr Kernels kKernels = makeKernels();

}  // namespace windlass
