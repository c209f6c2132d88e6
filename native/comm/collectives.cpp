// SPDX-License-Identifier: Apache-2.0
#include "native/comm/collectives.h"

#include <algorithm>

#include "native/comm/kernels.h"

namespace windlass {
namespace {

// Bytes of input up to which staging pays, as measured: what all peers read whole, one after the
// other; what each reads from all.
constexpr uint64_t kStagedBroadcast = uint64_t{64} << 10;
constexpr uint64_t kStagedMove = uint64_t{16} << 10;

bool stages(const Comm& comm, uint64_t inBytes, uint64_t limit) {
  return inBytes <= std::min(limit, comm.group().config().eagerBytes());
}

// Counts that are the same on every rank: what they add to, and what ranks compare.
struct Counts {
  uint64_t sum = 0;
  uint64_t largest = 0;
  uint64_t fingerprint = 0;

  Counts(const int64_t* counts, uint64_t ranks) {
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const auto count = static_cast<uint64_t>(counts[rank]);
      sum += count;
      largest = std::max(largest, count);
      fingerprint = (fingerprint ^ count) * 0x9e3779b97f4a7c15u;
      fingerprint ^= fingerprint >> 32;
    }
  }
};

// An exchange of parts. Ranks don't know one another's counts, so they can't tell together that it
// is small: its items are always claimed one by one.
Call exchange(const Comm& comm, const void* in, void* out, const PartLists& parts, bool packed,
              int32_t dtype, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const uint64_t sent = Counts(parts.inCounts, ranks).sum * sizeOf(static_cast<DType>(dtype));
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_ALL_TO_ALL_V, packed ? 1 : 0, dtype);
  call.args = {in, out, nullptr};
  call.inBytes = sent;
  call.workBytes = std::max(kSharedWorkBytes, sent * ranks);
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.parts = &parts;
  return call;
}

}  // namespace

Code allToAll(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
              int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const int32_t chosen = algorithm == WL_AUTO ? WL_PUSH : algorithm;
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_ALL_TO_ALL, count, dtype, 0, chosen);
  call.args = {in, out, nullptr};
  call.bytes = bytes;
  call.inBytes = bytes * ranks;
  call.workBytes = bytes * ranks * ranks;
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (stages(comm, call.inBytes, kStagedMove)) return comm.run(Kernel::kAllToAllStaged, call);
  return comm.run(chosen == WL_PUSH ? Kernel::kAllToAllPush : Kernel::kAllToAllPull, call);
}

Code broadcast(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const bool isRoot = comm.rank() == static_cast<uint32_t>(root);
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_BROADCAST, count, dtype, 0, WL_STAGED, root);
  call.args = {isRoot ? in : nullptr, isRoot && in == out ? nullptr : out, nullptr};
  call.bytes = bytes;
  call.inBytes = isRoot ? bytes : 0;
  call.workBytes = bytes * comm.group().ranks();
  call.deadlineNs = deadlineNs;
  call.error = error;
  return stages(comm, bytes, kStagedBroadcast) ? comm.run(Kernel::kBroadcastStaged, call)
                                               : comm.run(Kernel::kBroadcast, call);
}

Code allGather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error, wl_operation as) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(as, count, dtype);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, bytes, bytes * ranks * ranks, deadlineNs, error};
  return stages(comm, bytes, kStagedMove) ? comm.run(Kernel::kAllGatherStaged, call)
                                          : comm.run(Kernel::kAllGather, call);
}

Code reduceScatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes,
                   int32_t dtype, int32_t op, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(WL_OP_REDUCE_SCATTER, count, dtype, op);
  const Call call = {descriptor,    {in, out, nullptr},    bytes,
                     bytes * ranks, bytes * ranks * ranks, deadlineNs,
                     error};
  return stages(comm, call.inBytes, kStagedMove) ? comm.run(Kernel::kReduceScatterStaged, call)
                                                 : comm.run(Kernel::kReduceScatter, call);
}

Code allReduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int32_t op, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(WL_OP_ALL_REDUCE, count, dtype, op, algorithm);
  const Call call = {descriptor,        {in, out, nullptr}, bytes, bytes,
                     2 * bytes * ranks, deadlineNs,         error};
  if (algorithm == WL_RING && ranks > 1) return comm.run(Kernel::kAllReduceRing, call);
  if (algorithm == WL_BIDIRECTIONAL_RING && ranks > 1)
    return comm.run(Kernel::kAllReduceBidirectionalRing, call);
  if (stages(comm, bytes, kStagedAllReduce)) return comm.run(Kernel::kAllReduceStaged, call);
  return algorithm == WL_TWO_PHASE ? comm.run(Kernel::kAllReduceTwoPhase, call)
                                   : comm.run(Kernel::kAllReduceOnePhase, call);
}

Code scatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
             int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_SCATTER, count, dtype, 0, 0, root);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, 0, bytes * comm.group().ranks(), deadlineNs, error};
  return comm.run(Kernel::kScatter, call);
}

Code gather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_GATHER, count, dtype, 0, 0, root);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, 0, bytes * comm.group().ranks(), deadlineNs, error};
  return comm.run(Kernel::kGather, call);
}

Code reduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t op, int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_REDUCE, count, dtype, op, 0, root);
  const Call call = {descriptor, {in, out, nullptr},           bytes,
                     bytes,      bytes * comm.group().ranks(), deadlineNs,
                     error};
  const bool staged = stages(comm, bytes, kStagedMove);
  return comm.run(staged ? Kernel::kReduceStaged : Kernel::kReduce, call);
}

Code allToAllV(Comm& comm, const void* in, void* out, const PartLists& parts, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error) {
  return comm.run(Kernel::kAllToAllV,
                       exchange(comm, in, out, parts, false, dtype, deadlineNs, error));
}

Code allToAllVPacked(Comm& comm, const void* in, void* out, const PartLists& parts,
                     int64_t* received, int32_t dtype, int64_t deadlineNs, wl_error_t* error) {
  const Call call = exchange(comm, in, out, parts, true, dtype, deadlineNs, error);
  if (Code code = comm.run(Kernel::kAllToAllVPacked, call); code != WL_OK) return code;
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  const PartTable& own = comm.parts(comm.rank());
  for (uint32_t rank = 0; own.refused != 0 && rank < comm.group().ranks(); ++rank) {
    const PartTable& table = comm.parts(rank);
    if (table.needed <= table.room) continue;
    return fail(
        error, WL_INVALID_ARGUMENT,
        "out of rank %u has room for %llu elements, and %llu come to it; nothing has moved: "
        "call again with more room there",
        rank, static_cast<unsigned long long>(table.room / elementBytes),
        static_cast<unsigned long long>(table.needed / elementBytes));
  }
  for (uint32_t rank = 0; rank < comm.group().ranks(); ++rank) {
    received[rank] = static_cast<int64_t>(own.out(rank).bytes / elementBytes);
  }
  return WL_OK;
}

Code allGatherV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                int64_t deadlineNs, wl_error_t* error, wl_operation as) {
  const uint64_t ranks = comm.group().ranks();
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  const Counts all(counts, ranks);
  const PartLists parts = {nullptr, nullptr, counts, nullptr, 0};
  Call call = {};
  call.descriptor = Descriptor::of(as, all.fingerprint, dtype);
  call.args = {in, out, nullptr};
  call.inBytes = static_cast<uint64_t>(counts[comm.rank()]) * elementBytes;
  call.workBytes = all.sum * elementBytes * ranks;
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.parts = &parts;
  const bool staged = stages(comm, all.largest * elementBytes, kStagedMove);
  return comm.run(staged ? Kernel::kAllGatherVStaged : Kernel::kAllGatherV, call);
}

Code reduceScatterV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                    int32_t op, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Counts all(counts, ranks);
  const PartLists parts = {counts, nullptr, nullptr, nullptr, 0};
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_REDUCE_SCATTER_V, all.fingerprint, dtype, op);
  call.args = {in, out, nullptr};
  call.inBytes = all.sum * sizeOf(static_cast<DType>(dtype));
  call.workBytes = call.inBytes * ranks;
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.parts = &parts;
  const bool staged = stages(comm, call.inBytes, kStagedMove);
  return comm.run(staged ? Kernel::kReduceScatterVStaged : Kernel::kReduceScatterV, call);
}

Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error) {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_BARRIER, 0);
  call.deadlineNs = deadlineNs;
  call.error = error;
  return comm.run(Kernel::kBarrier, call);
}

}  // namespace windlass
