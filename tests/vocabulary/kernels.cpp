// SPDX-License-Identifier: Apache-2.0
// Every kernel compiled against a vocabulary without anything behind it: a kernel that uses more
// than the vocabulary and windlass/kernel.h, or a function that no device runs, doesn't compile.
#include "kernels/all_gather.h"
#include "kernels/all_gather_columns.h"
#include "kernels/all_gather_v.h"
#include "kernels/all_offloaded.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/all_to_all_v.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/chunk.h"
#include "kernels/expert_combine.h"
#include "kernels/expert_dispatch.h"
#include "kernels/offload.h"
#include "kernels/one_sided.h"
#include "kernels/pull.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_columns.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scan.h"
#include "kernels/scatter.h"
#include "windlass/in_line.h"

namespace windlass {

template <typename... Kernels>
WL_CORE void runEach(Launch& launch, const InLine& line, Position& at) {
  ((Kernels::plan(launch), runInLine<Kernels>(launch, line, at)), ...);
}

WL_CORE void runAll(Launch& launch, const InLine& line, Position& at) {
  runEach<AllToAllPush, AllToAllPull, Eager<AllToAllPull>, Broadcast, Eager<Broadcast>, AllGather,
          Eager<AllGatherPull>, AllGatherColumns, Eager<AllGatherColumnsPull>, ReduceScatter,
          Eager<ReduceScatter>, AllReduceOnePhase, AllReduceTwoPhase, AllReduceRing,
          AllReduceBidirectionalRing, Eager<AllReduceOnePhase>, Scatter, Gather, Reduce,
          Eager<Reduce>, AllToAllV, AllToAllVPacked, AllGatherV, Eager<AllGatherVPull>,
          ReduceScatterV, Eager<ReduceScatterV>, ReduceScatterColumns,
          Eager<ReduceScatterColumns>, Scan, Eager<Scan>, ExclusiveScan, Eager<ExclusiveScan>,
          Barrier, Redistribute, ExpertDispatch, ExpertCombine>(launch, line, at);
}

WL_CORE bool runOffloaded(const OffloadedOperation& operation, Position& at) {
  const Launch launch = operation.launchHere();
  return goOnOffloaded<OffloadedKernels>(operation, launch, operation.lineHere(0), at) &&
         goOnOffloaded<AllOffloadedKernels>(operation, launch, operation.lineHere(0), at);
}

template <typename... Pulls>
WL_CORE uint64_t pullEach(const Launch& launch) {
  return (Pulls::pulled(launch, 0, 1, 0).bytes + ...);
}

WL_CORE uint64_t pullAll(const Launch& launch) {
  return pullEach<AllToAllReads, BroadcastReads, AllGatherReads, AllGatherColumnsReads,
                  ReduceScatterReads, AllReduceReads, ReduceReads, ScatterReads, GatherReads,
                  AllToAllVReads, AllToAllVPackedReads, AllGatherVReads, ReduceScatterVReads,
                  ReduceScatterColumnsReads, PrefixReads<Scan>, PrefixReads<ExclusiveScan>>(launch);
}

WL_CORE void runOneSided(const StridedView& to, const StridedView& from, int32_t* signal) {
  oneSidedMove(to, from);
  oneSidedAccumulate(to, from);
  oneSidedNotify(signal, 1);
}

}  // namespace windlass
