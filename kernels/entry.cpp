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
#include "kernels/one_sided.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scatter.h"
#include "native/comm/cpu_executor.h"
#include "native/comm/kernels.h"

namespace windlass {
namespace {

template <class K>
Code onCpu(Comm& comm, const Call& call) {
  return comm.run<K>(call);
}

constexpr Kernels makeKernels() {
  Kernels kernels = {};
  const auto set = [&](Kernel kernel, Code (*onCpu)(Comm&, const Call&)) {
    kernels.run[static_cast<uint32_t>(kernel)] = onCpu;
  };
  set(Kernel::kAllToAllPush, onCpu<AllToAllPush>);
  set(Kernel::kAllToAllPull, onCpu<AllToAllPull>);
  set(Kernel::kAllToAllStaged, onCpu<Staged<AllToAllPull>>);
  set(Kernel::kBroadcast, onCpu<Broadcast>);
  set(Kernel::kBroadcastStaged, onCpu<Staged<Broadcast>>);
  set(Kernel::kAllGather, onCpu<AllGather>);
  set(Kernel::kAllGatherStaged, onCpu<Staged<AllGatherPull>>);
  set(Kernel::kReduceScatter, onCpu<ReduceScatter>);
  set(Kernel::kReduceScatterStaged, onCpu<Staged<ReduceScatter>>);
  set(Kernel::kAllReduceOnePhase, onCpu<AllReduceOnePhase>);
  set(Kernel::kAllReduceTwoPhase, onCpu<AllReduceTwoPhase>);
  set(Kernel::kAllReduceRing, onCpu<AllReduceRing>);
  set(Kernel::kAllReduceBidirectionalRing, onCpu<AllReduceBidirectionalRing>);
  set(Kernel::kAllReduceStaged, onCpu<Staged<AllReduceOnePhase>>);
  set(Kernel::kScatter, onCpu<Scatter>);
  set(Kernel::kGather, onCpu<Gather>);
  set(Kernel::kReduce, onCpu<Reduce>);
  set(Kernel::kReduceStaged, onCpu<Staged<Reduce>>);
  set(Kernel::kAllToAllV, onCpu<AllToAllV>);
  set(Kernel::kAllToAllVPacked, onCpu<AllToAllVPacked>);
  set(Kernel::kAllGatherV, onCpu<AllGatherV>);
  set(Kernel::kAllGatherVStaged, onCpu<Staged<AllGatherVPull>>);
  set(Kernel::kReduceScatterV, onCpu<ReduceScatterV>);
  set(Kernel::kReduceScatterVStaged, onCpu<Staged<ReduceScatterV>>);
  set(Kernel::kBarrier, onCpu<Barrier>);
  set(Kernel::kRedistribute, onCpu<Redistribute>);
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
