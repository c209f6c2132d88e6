// SPDX-License-Identifier: Apache-2.0
// The kernels of one target, each instantiated here alone, once for each executor; and the target.
#include "kernels/all_gather.h"
#include "kernels/all_gather_columns.h"
#include "kernels/all_gather_v.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/all_to_all_v.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/chunk.h"
#include "kernels/in_line.h"
#include "kernels/one_sided.h"
#include "kernels/pull.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scatter.h"
#include "native/base/target.h"
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
constexpr Kernel kernel = {{onCpu<K>, onDevice<K>}};

template <class K>
constexpr Algorithm algorithm(uint8_t name = WL_AUTO) {
  return {name, true, true, WL_MAX_RANKS, kernel<K>};
}
// A ring takes its phases in any case, each of them a step to the next rank.
template <class K>
constexpr Algorithm ring(uint8_t name) {
  return {name, false, true, kMostPhases / 2 + 1, kernel<K>};
}

// Bytes of input up to which its copy on ENTER pays, as measured: what all peers read whole, one
// after the other; what each reads from all; what each folds of all.
constexpr uint32_t kEagerBroadcast = 64u << 10;
constexpr uint32_t kEagerMove = 16u << 10;
constexpr uint32_t kEagerAllReduce = 4u << 10;

constexpr Kernels makeKernels() {
  constexpr auto kNothing = Holds::kNothing;
  constexpr auto kPart = Holds::kPart;
  constexpr auto kParts = Holds::kParts;
  constexpr auto kUnequalParts = Holds::kUnequalParts;
  constexpr auto kRootsPart = Holds::kRootsPart;
  constexpr auto kRootsParts = Holds::kRootsParts;
  constexpr auto kMoved = Result::kMoved;
  constexpr auto kReduced = Result::kReduced;
  constexpr auto kApart = Buffers::kApart;
  constexpr auto kInPlace = Buffers::kApartOrInPlace;
  constexpr auto kRun = PartShape::kRun;
  constexpr auto kRows = PartShape::kRows;
  constexpr Kernel kNever = {};
  constexpr Algorithm kOnePhase = {WL_ONE_PHASE, true, false, WL_MAX_RANKS,
                                   kernel<Across<AllReduceOnePhase, AllReduceReads>>};

  Kernels kernels = {};
  Collective* collectives = kernels.collectives;
  collectives[WL_OP_BARRIER] = {
      "barrier", kNothing, kNothing, kMoved, kApart, kRun, 0,
      0, kNever, {algorithm<Barrier>()}};
  collectives[WL_OP_ALL_TO_ALL] = {
      "all-to-all", kParts, kParts, kMoved, kApart, kRun, 1,
      kEagerMove, kernel<Eager<AllToAllPull>>,
      {algorithm<Across<AllToAllPush, AllToAllReads>>(WL_PUSH),
       algorithm<Across<AllToAllPull, AllToAllReads>>(WL_PULL)}};
  collectives[WL_OP_BROADCAST] = {
      "broadcast", kRootsPart, kPart, kMoved, kInPlace, kRun, 1,
      kEagerBroadcast, kernel<Eager<Broadcast>>,
      {algorithm<Across<Broadcast, BroadcastReads>>(WL_STAGED)}};
  collectives[WL_OP_ALL_GATHER] = {
      "all-gather", kPart, kParts, kMoved, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<AllGatherPull>>, {algorithm<Across<AllGather, AllGatherReads>>()}};
  collectives[WL_OP_ALL_GATHER_COLUMNS] = {
      "all-gather-columns", kPart, kParts, kMoved, kApart, kRows, 1,
      kEagerMove, kernel<Eager<AllGatherColumnsPull>>,
      {algorithm<Across<AllGatherColumns, AllGatherColumnsReads>>()}};
  collectives[WL_OP_REDUCE_SCATTER] = {
      "reduce-scatter", kParts, kPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<ReduceScatter>>,
      {algorithm<Across<ReduceScatter, ReduceScatterReads>>()}};
  collectives[WL_OP_ALL_REDUCE] = {
      "all-reduce", kPart, kPart, kReduced, kInPlace, kRun, 2,
      kEagerAllReduce, kernel<Eager<AllReduceOnePhase>>,
      {algorithm<Across<AllReduceTwoPhase, AllReduceReads>>(WL_TWO_PHASE), kOnePhase,
       ring<Across<AllReduceRing, AllReduceReads>>(WL_RING),
       ring<Across<AllReduceBidirectionalRing, AllReduceReads>>(WL_BIDIRECTIONAL_RING)}};
  collectives[WL_OP_SCATTER] = {
      "scatter", kRootsParts, kPart, kMoved, kInPlace, kRun, 1,
      0, kNever, {algorithm<Across<Scatter, ScatterReads>>()}};
  collectives[WL_OP_GATHER] = {
      "gather", kPart, kRootsParts, kMoved, kInPlace, kRun, 1,
      0, kNever, {algorithm<Across<Gather, GatherReads>>()}};
  collectives[WL_OP_REDUCE] = {
      "reduce", kPart, kRootsPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<Reduce>>, {algorithm<Across<Reduce, ReduceReads>>()}};
  collectives[WL_OP_ALL_TO_ALL_V] = {
      "all-to-all-v", kUnequalParts, kUnequalParts, kMoved, kApart, kRun, 1,
      0, kNever, {algorithm<Across<AllToAllV, AllToAllVReads>>()}};
  collectives[WL_OP_ALL_GATHER_V] = {
      "all-gather-v", kPart, kUnequalParts, kMoved, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<AllGatherVPull>>,
      {algorithm<Across<AllGatherV, AllGatherVReads>>()}};
  collectives[WL_OP_REDUCE_SCATTER_V] = {
      "reduce-scatter-v", kUnequalParts, kPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<ReduceScatterV>>,
      {algorithm<Across<ReduceScatterV, ReduceScatterVReads>>()}};
  kernels.allToAllVPacked = kernel<Across<AllToAllVPacked, AllToAllVPackedReads>>;
  kernels.redistribute = kernel<Redistribute>;
  kernels.put = oneSidedPut;
  kernels.accumulate = oneSidedAccumulate;
  kernels.get = oneSidedGet;
  kernels.notify = oneSidedNotify;
  return kernels;
}

}  // namespace

constexpr Kernels kKernels = makeKernels();
constexpr Target kTarget = {kLimits, copyBytes, TMOVE_CVT, TFOLD, isaPathName, isaPathError};

}  // namespace windlass
