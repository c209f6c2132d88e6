// SPDX-License-Identifier: Apache-2.0
// The kernels of one target, and the target. Only this file instantiates them, once per executor.
#include <type_traits>

#include "kernels/all_offloaded.h"
#include "kernels/one_sided.h"
#include "native/base/target.h"
#include "native/core/executor/cpu_executor.h"
#include "native/core/executor/in_line_executor.h"
#include "native/core/launch/kernels.h"
#include "native/core/launch/rank_moves.h"
#include "native/device/offload_executor.h"
#include "native/hosts/hosts_executor.h"
#include "native/isa/library_image.h"
#include "windlass/in_line.h"

namespace windlass {
namespace {

// Kernel K, with each phase inside the scope that its macro-instructions share.
template <class K>
struct Scoped : K {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    const PhaseScope scope(launch);
    K::phase(launch, rank, block, k);
  }
};

template <class K>
struct InLineKernel : Scoped<K> {
  using Session = CoreSession;
  static bool goOn(CoreSession& session, const Launch& launch, const InLine& own, Position& at) {
    [[maybe_unused]] const auto running = session.run(own.core);
    return runInLine<Scoped<K>>(launch, own, at);
  }
};

// A rank runs only its own items: over hosts, or in line on its cores.
template <class K>
Code ownItems(Comm& comm, const Call& call) {
  if (comm.group().hosts() != nullptr) return runOverHosts<Scoped<K>>(comm, call);
  return runOnCores<InLineKernel<K>>(comm, call);
}

#if defined(WINDLASS_TARGET_CUDA)
using DeviceKernels = AllOffloadedKernels;
#else
using DeviceKernels = OffloadedKernels;
#endif

// Is: the kernel that a device runs in place of K.
template <class K>
struct OnDevice {
  using Is = K;
};
template <class K, class P>
struct OnDevice<Across<K, P>> {
  using Is = K;
};
template <class K>
Code offloaded(Comm& comm, const Call& call) {
  constexpr uint32_t kIndex = DeviceKernels::indexOf<typename OnDevice<K>::Is>();
  static_assert(kIndex != kNobody, "the device has it: kernels/offload.h");
  return runOffloaded<K>(comm, call, kIndex);
}

// Fails if the device lacks the kernel: the kernels of redistribution and of experts.
template <class K>
Code missing(Comm&, const Call& call) {
  return fail(call.error, WL_UNSUPPORTED, "%s run on %s yet: its devices run collectives alone",
              std::is_same_v<K, Redistribute> ? "redistribution doesn't"
                                             : "expert dispatch and combine don't",
              kLimits.name);
}

// If each rank is an emulated device, only its cores run kernels.
template <class K>
Code onCpu(Comm& comm, const Call& call) {
  if constexpr (kLimits.isolatesRanks) {
    return ownItems<K>(comm, call);
  } else {
    return runOnCpu<Scoped<K>>(comm, call);
  }
}

// The host runs kernels that move nothing, except on a stream, where the devices wait for one
// another.
template <class K>
Code onHost(Comm& comm, const Call& call) {
  return call.on == nullptr ? onCpu<K>(comm, call) : offloaded<Barrier>(comm, call);
}

// The kernel for both executors. A rank's device runs kernels that move the caller's tensors.
template <class K>
constexpr Kernel makeKernel() {
  if constexpr (kLimits.offloadCores == 0) {
    return {{onCpu<K>, ownItems<K>}};
  } else if constexpr ((std::is_same_v<K, Redistribute> || std::is_same_v<K, ExpertDispatch> ||
                        std::is_same_v<K, ExpertCombine>) &&
                       DeviceKernels::indexOf<K>() == kNobody) {
    return {{missing<K>, missing<K>}};
  } else if constexpr (K::kEager || std::is_same_v<K, Barrier>) {
    return {{onHost<K>, onHost<K>}};
  } else {
    return {{offloaded<K>, offloaded<K>}};
  }
}
template <class K>
constexpr Kernel kernel = makeKernel<K>();

constexpr int64_t kOne = 1;

// Runs `body` for one rank, outside of kernels that ranks run together. Returns nullptr, or a text
// about what the target does not allow. Only the views are checked, and only if ranks are devices.
// viewsOf() returns them.
template <class ViewsOf, class Body>
const char* aloneOn(const char* name, const ViewsOf& viewsOf, const Body& body) {
  if constexpr (kLimits.isolatesRanks) {
    return runAlone(name, viewsOf(), body);
  } else {
    body();
    return nullptr;
  }
}

template <class Body>
const char* alone(const char* name, std::initializer_list<StridedView> views, const Body& body) {
  return aloneOn(name, [&] { return std::vector<StridedView>(views); }, body);
}

const char* put(const StridedView& remote, const StridedView& local) {
  return alone("put", {remote, local}, [&] { oneSidedMove(remote, local); });
}
const char* accumulate(const StridedView& remote, const StridedView& local) {
  return alone("accumulate", {remote, local}, [&] { oneSidedAccumulate(remote, local); });
}
const char* get(const StridedView& local, const StridedView& remote) {
  return alone("get", {local, remote}, [&] { oneSidedMove(local, remote); });
}
const char* notify(int32_t* signal, uint32_t value) {
  const StridedView word = {signal, DType::kI32, 0, nullptr, nullptr};
  return alone("notify", {word}, [&] { oneSidedNotify(signal, value); });
}
const char* copy(void* dst, const void* src, size_t bytes, bool streams) {
  const auto length = static_cast<int64_t>(bytes);
  const StridedView to = {dst, DType::kU8, 1, &length, &kOne};
  const StridedView from = {const_cast<void*>(src), DType::kU8, 1, &length, &kOne};
  return alone("copy", {to, from}, [&] {
    if constexpr (kLimits.isolatesRanks) {
      oneSidedMove(to, from);
    } else if (streams) {
      TMOVE_CVT(to, from, DType::kU8, Stores::kStreaming);
    } else {
      copyBytes(dst, src, bytes);
    }
  });
}
const char* copyBox(void* dst, const FarBox& box, uint64_t from, uint64_t count) {
  auto* to = static_cast<unsigned char*>(dst);
  if constexpr (kLimits.isolatesRanks) {
    const char* broken = nullptr;
    box.forEachPart(from, count, [&](const StridedView& part) {
      if (broken != nullptr) return;
      int64_t strides[kMaxDims];
      int64_t bytes = 1;
      for (uint32_t d = part.ndim; d-- > 0; bytes *= part.shape[d]) strides[d] = bytes;
      broken = get({to, part.dtype, part.ndim, part.shape, strides}, part);
      to += bytes;
    });
    return broken;
  } else {
    box.forEachRun(from, count, [&](uint64_t address, uint64_t length) {
      copyBytes(to, reinterpret_cast<const void*>(address), length);
      to += length;
    });
    return nullptr;
  }
}
const char* moveItem(const Launch& launch, const ChunkItem& item) {
  const PhaseScope scope(launch);
  const auto viewsOf = [&] {
    const ChunkViews own = {launch, item};
    std::vector<StridedView> views;
    for (uint32_t t = 0; t < item.targets(); ++t) {
      views.push_back(own.target(t));
      if (!own.isStaged()) views.push_back({own.signal(t), DType::kI32, 0, nullptr, nullptr});
    }
    for (uint32_t s = 0; s < item.sources(); ++s) views.push_back(own.source(s));
    return views;
  };
  return aloneOn("transfer", viewsOf, [&] { moveChunk(launch, item); });
}
const char* fold(void* dst, const void* const* src, uint32_t count, int64_t elements, DType dtype,
                 ReduceOp op, uint32_t terms, const double* factors) {
  const auto viewsOf = [&] {
    std::vector<StridedView> views = {{dst, dtype, 1, &elements, &kOne}};
    for (uint32_t s = 0; s < count; ++s)
      views.push_back({const_cast<void*>(src[s]), dtype, 1, &elements, &kOne});
    return views;
  };
  return aloneOn("fold", viewsOf,
                 [&] { foldAlone(dst, src, count, elements, dtype, op, terms, factors); });
}
const char* lead(const PullForm& form, const Launch& launch, uint32_t rank) {
  const auto length = static_cast<int64_t>(PartTable::bytes(launch.ranks));
  const auto viewsOf = [&] {
    std::vector<StridedView> views;
    for (uint32_t of = 0; of < launch.ranks; ++of)
      views.push_back({&launch.parts(of), DType::kU8, 1, &length, &kOne});
    return views;
  };
  return aloneOn("lead", viewsOf, [&] { form.lead(launch, rank); });
}

// A kernel without a PullForm would access memory that other processes have outside windows.
template <class K>
constexpr Algorithm algorithm(uint8_t name = WL_AUTO) {
  static_assert(Pulls<K>::value || std::is_same_v<K, Barrier>,
                "Across names what each rank reads of the others: kernels/pull.h");
  return {name, true, true, WL_MAX_RANKS, kernel<K>};
}
// A ring always takes its phases. Each phase is a step to the next rank.
template <class K>
constexpr Algorithm ring(uint8_t name) {
  return {name, false, true, kMostPhases / 2 + 1, kernel<K>};
}

// Largest inputs for which the copy on ENTER pays, as docs/explanation/speed-small.md measures.
// 0 if devices run the kernels.
//   kEagerAllToAll   each rank reads a part of all inputs
//   kEagerBroadcast  all peers read one input as a whole
//   kEagerGather     each rank reads all inputs as a whole
//   kEagerMove       a root or each rank folds, or parts are matrices
//   kEagerAllReduce  each rank folds all inputs
constexpr EagerLimits eager(EagerLimits limits) {
  return kLimits.offloadCores == 0 ? limits : EagerLimits{};
}
constexpr EagerLimits kEagerAllToAll = eager({{16, 0, 64, 256, 1024}});
constexpr EagerLimits kEagerBroadcast = eager({{32, 1024, 64, 1024, 1024}});
constexpr EagerLimits kEagerGather = eager({{8, 256, 64, 256, 1024}});
constexpr EagerLimits kEagerMove = eager({{32, 256, 64, 256, 1024}});
constexpr EagerLimits kEagerAllReduce = eager({{16, 64, 64, 64, 1024}});

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
      {}, kNever, {algorithm<Barrier>()}};
  collectives[WL_OP_ALL_TO_ALL] = {
      "all-to-all", kParts, kParts, kMoved, kApart, kRun, 1,
      kEagerAllToAll, kernel<Eager<AllToAllPull>>,
      {algorithm<Across<AllToAllPush, AllToAllReads>>(WL_PUSH),
       algorithm<Across<AllToAllPull, AllToAllReads>>(WL_PULL)}};
  collectives[WL_OP_BROADCAST] = {
      "broadcast", kRootsPart, kPart, kMoved, kInPlace, kRun, 1,
      kEagerBroadcast, kernel<Eager<Broadcast>>,
      {algorithm<Across<Broadcast, BroadcastReads>>(WL_STAGED)}};
  collectives[WL_OP_ALL_GATHER] = {
      "all-gather", kPart, kParts, kMoved, kInPlace, kRun, 1,
      kEagerGather, kernel<Eager<AllGatherPull>>,
      {algorithm<Across<AllGather, AllGatherReads>>()}};
  collectives[WL_OP_ALL_GATHER_DIM] = {
      "all-gather-dim", kPart, kParts, kMoved, kApart, kRows, 1,
      kEagerMove, kernel<Eager<AllGatherColumnsPull>>,
      {algorithm<Across<AllGatherColumns, AllGatherColumnsReads>>()}};
  collectives[WL_OP_REDUCE_SCATTER] = {
      "reduce-scatter", kParts, kPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<ReduceScatter>>,
      {algorithm<Across<ReduceScatter, ReduceScatterReads>>()}};
  collectives[WL_OP_REDUCE_SCATTER_DIM] = {
      "reduce-scatter-dim", kParts, kPart, kReduced, kApart, kRows, 1,
      kEagerMove, kernel<Eager<ReduceScatterColumns>>,
      {algorithm<Across<ReduceScatterColumns, ReduceScatterColumnsReads>>()}};
  collectives[WL_OP_SCAN] = {
      "scan", kPart, kPart, kReduced, kApart, kRun, 1,
      kEagerAllReduce, kernel<Eager<Scan>>, {algorithm<Across<Scan, PrefixReads<Scan>>>()}};
  collectives[WL_OP_EXCLUSIVE_SCAN] = {
      "exclusive-scan", kPart, kPart, kReduced, kApart, kRun, 1,
      kEagerAllReduce, kernel<Eager<ExclusiveScan>>,
      {algorithm<Across<ExclusiveScan, PrefixReads<ExclusiveScan>>>()}};
  collectives[WL_OP_ALL_REDUCE] = {
      "all-reduce", kPart, kPart, kReduced, kInPlace, kRun, 2,
      kEagerAllReduce, kernel<Eager<AllReduceOnePhase>>,
      {algorithm<Across<AllReduceTwoPhase, AllReduceReads>>(WL_TWO_PHASE), kOnePhase,
       ring<Across<AllReduceRing, AllReduceReads>>(WL_RING),
       ring<Across<AllReduceBidirectionalRing, AllReduceReads>>(WL_BIDIRECTIONAL_RING)}};
  collectives[WL_OP_SCATTER] = {
      "scatter", kRootsParts, kPart, kMoved, kInPlace, kRun, 1,
      {}, kNever, {algorithm<Across<Scatter, ScatterReads>>()}};
  collectives[WL_OP_GATHER] = {
      "gather", kPart, kRootsParts, kMoved, kInPlace, kRun, 1,
      {}, kNever, {algorithm<Across<Gather, GatherReads>>()}};
  collectives[WL_OP_REDUCE] = {
      "reduce", kPart, kRootsPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<Reduce>>, {algorithm<Across<Reduce, ReduceReads>>()}};
  collectives[WL_OP_ALL_TO_ALL_V] = {
      "all-to-all-v", kUnequalParts, kUnequalParts, kMoved, kApart, kRun, 1,
      {}, kNever, {algorithm<Across<AllToAllV, AllToAllVReads>>()}};
  collectives[WL_OP_ALL_GATHER_V] = {
      "all-gather-v", kPart, kUnequalParts, kMoved, kInPlace, kRun, 1,
      kEagerGather, kernel<Eager<AllGatherVPull>>,
      {algorithm<Across<AllGatherV, AllGatherVReads>>()}};
  collectives[WL_OP_REDUCE_SCATTER_V] = {
      "reduce-scatter-v", kUnequalParts, kPart, kReduced, kInPlace, kRun, 1,
      kEagerMove, kernel<Eager<ReduceScatterV>>,
      {algorithm<Across<ReduceScatterV, ReduceScatterVReads>>()}};
  kernels.allToAllVPacked = kernel<Across<AllToAllVPacked, AllToAllVPackedReads>>;
  kernels.redistribute = kernel<Redistribute>;
  kernels.expertDispatch = kernel<ExpertDispatch>;
  kernels.expertCombine = kernel<ExpertCombine>;
  return kernels;
}

}  // namespace

#if defined(WINDLASS_TARGET_A2A3) || defined(WINDLASS_TARGET_A5)
// kernels/launcher.cpp, which the device's own compiler compiles.
extern "C" int32_t windlass_launch(uint32_t cores, void* stream, void* context, void* operation);
static constexpr auto kOffload = windlass_launch;
#else
static constexpr decltype(Target::offload) kOffload = nullptr;
#endif

static void foldWeighted(void* dst, const void* const* src, const float* weights, uint32_t count,
                         int64_t elements, DType dtype, Stores stores) {
  const auto row = [&](uint32_t s) { return src[s]; };
  const auto sum = [&](uint32_t) { return dst; };
  const auto weight = [&](uint32_t s) { return weights[s]; };
  TFOLD_WEIGHTED(rowsAt(1, sum), rowsAt(count, row), weightsAt(count, weight), elements, dtype,
                 stores);
}

constexpr Kernels kKernels = makeKernels();
constexpr RankMoves kRankMoves = {put,     accumulate, get,  notify, copy,
                                  copyBox, moveItem,   lead, fold};
constexpr Target kTarget = {kLimits,     copyBytes,     TMOVE_CVT,       TFOLD,   foldWeighted,
                            isaPathName, targetRefusal, kTargetProfiler, kOffload, kLibraryImage};

}  // namespace windlass
