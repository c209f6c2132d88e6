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

// Bytes of input up to which staging pays, as measured: what all peers read whole, one after the
// other; what each reads from all; what each folds of all.
constexpr uint32_t kStagedBroadcast = 64u << 10;
constexpr uint32_t kStagedMove = 16u << 10;
constexpr uint32_t kStagedAllReduce = 4u << 10;

constexpr Kernels makeKernels() {
  Kernels kernels = {};
  Collective* collectives = kernels.collectives;
  constexpr Kernel kNever = {};
  constexpr Algorithm kOnePhase = {WL_ONE_PHASE, true, false, WL_MAX_RANKS,
                                   kernel<AllReduceOnePhase>};

  collectives[WL_OP_BARRIER] = {"barrier",     Holds::kNothing, Holds::kNothing,
                                Result::kMoved, Buffers::kApart, 0,
                                0,             kNever,          {algorithm<Barrier>()}};
  collectives[WL_OP_ALL_TO_ALL] = {
      "all-to-all", Holds::kParts, Holds::kParts, Result::kMoved, Buffers::kApart, 1,
      kStagedMove, kernel<Staged<AllToAllPull>>,
      {algorithm<AllToAllPush>(WL_PUSH), algorithm<AllToAllPull>(WL_PULL)}};
  collectives[WL_OP_BROADCAST] = {
      "broadcast", Holds::kRootsPart, Holds::kPart, Result::kMoved, Buffers::kApartOrInPlace, 1,
      kStagedBroadcast, kernel<Staged<Broadcast>>, {algorithm<Broadcast>(WL_STAGED)}};
  collectives[WL_OP_ALL_GATHER] = {
      "all-gather", Holds::kPart, Holds::kParts, Result::kMoved, Buffers::kApartOrInPlace, 1,
      kStagedMove, kernel<Staged<AllGatherPull>>, {algorithm<AllGather>()}};
  collectives[WL_OP_REDUCE_SCATTER] = {
      "reduce-scatter", Holds::kParts, Holds::kPart, Result::kReduced, Buffers::kApartOrInPlace, 1,
      kStagedMove, kernel<Staged<ReduceScatter>>, {algorithm<ReduceScatter>()}};
  collectives[WL_OP_ALL_REDUCE] = {
      "all-reduce", Holds::kPart, Holds::kPart, Result::kReduced, Buffers::kApartOrInPlace, 2,
      kStagedAllReduce, kernel<Staged<AllReduceOnePhase>>,
      {algorithm<AllReduceTwoPhase>(WL_TWO_PHASE), kOnePhase, ring<AllReduceRing>(WL_RING),
       ring<AllReduceBidirectionalRing>(WL_BIDIRECTIONAL_RING)}};
  collectives[WL_OP_SCATTER] = {
      "scatter", Holds::kRootsParts, Holds::kPart, Result::kMoved, Buffers::kApartOrInPlace, 1,
      0, kNever, {algorithm<Scatter>()}};
  collectives[WL_OP_GATHER] = {
      "gather", Holds::kPart, Holds::kRootsParts, Result::kMoved, Buffers::kApartOrInPlace, 1,
      0, kNever, {algorithm<Gather>()}};
  collectives[WL_OP_REDUCE] = {
      "reduce", Holds::kPart, Holds::kRootsPart, Result::kReduced, Buffers::kApartOrInPlace, 1,
      kStagedMove, kernel<Staged<Reduce>>, {algorithm<Reduce>()}};
  collectives[WL_OP_ALL_TO_ALL_V] = {
      "all-to-all-v", Holds::kUnequalParts, Holds::kUnequalParts, Result::kMoved, Buffers::kApart,
      1, 0, kNever, {algorithm<AllToAllV>()}};
  collectives[WL_OP_ALL_GATHER_V] = {
      "all-gather-v", Holds::kPart, Holds::kUnequalParts, Result::kMoved,
      Buffers::kApartOrInPlace, 1, kStagedMove, kernel<Staged<AllGatherVPull>>,
      {algorithm<AllGatherV>()}};
  collectives[WL_OP_REDUCE_SCATTER_V] = {
      "reduce-scatter-v", Holds::kUnequalParts, Holds::kPart, Result::kReduced,
      Buffers::kApartOrInPlace, 1, kStagedMove, kernel<Staged<ReduceScatterV>>,
      {algorithm<ReduceScatterV>()}};
  kernels.allToAllVPacked = kernel<AllToAllVPacked>;
  kernels.redistribute = kernel<Redistribute>;
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
