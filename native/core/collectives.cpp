// SPDX-License-Identifier: Apache-2.0
#include "native/core/collectives.h"

#include <algorithm>

#include "native/base/mixed.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// Returns the kernel of a collective of unequal parts whose largest input has `bytes` bytes.
const Kernel& kernelFor(const Comm& comm, const Collective& collective, uint64_t bytes) {
  return bytes <= collective.limits.bytes(comm.operation().ranksAre())
             ? collective.eager
             : collective.algorithms[0].kernel;
}

// Counts of a call that are the same on every rank. Ranks compare `fingerprint`.
struct Counts {
  uint64_t sum = 0;
  uint64_t largest = 0;
  uint64_t fingerprint = 0;

  Counts(const int64_t* counts, uint64_t ranks) {
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const auto count = static_cast<uint64_t>(counts[rank]);
      sum += count;
      largest = std::max(largest, count);
      fingerprint = mixed(fingerprint, count);
    }
  }
};

// Returns the part of a call that its operation and buffers do not determine.
Call callOf(const wl_call_t& stated, const PartLists& parts, wl_error_t* error, OnStream* on) {
  Call call = Call::of({}, stated.deadline_ns, error);
  call.args = {stated.in, stated.out, nullptr};
  call.on = on;
  call.parts = &parts;
  return call;
}

// An exchange of parts. Ranks do not know one another's counts, so they cannot decide together that
// it is small. Therefore ranks always claim its items one by one.
void setExchanged(Call* call, uint64_t ranks, bool packed, int32_t dtype) {
  const PartLists& parts = *call->parts;
  call->descriptor = Descriptor::of(WL_OP_ALL_TO_ALL_V, packed ? 1 : 0, dtype);
  call->inBytes = Counts(parts.inCounts, ranks).sum * sizeOf(static_cast<DType>(dtype));
  call->outBytes = parts.room;
  call->workBytes = std::max(kSharedWorkBytes, call->inBytes * ranks);
}

}  // namespace

Code allToAllV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  const PartLists parts = {stated.in_counts, stated.in_offsets, stated.out_counts,
                           stated.out_offsets, 0};
  Call call = callOf(stated, parts, error, on);
  setExchanged(&call, comm.group().ranks(), false, stated.dtype);
  return comm.run(kKernels.collectives[WL_OP_ALL_TO_ALL_V].algorithms[0].kernel, call);
}

Code allToAllVPacked(Comm& comm, const wl_call_t& stated, wl_error_t* error) {
  const uint64_t elementBytes = sizeOf(static_cast<DType>(stated.dtype));
  const PartLists parts = {stated.in_counts, stated.in_offsets, nullptr, nullptr,
                           stated.out_elements * elementBytes};
  Call call = callOf(stated, parts, error, nullptr);
  setExchanged(&call, comm.group().ranks(), true, stated.dtype);
  const Code code = comm.run(kKernels.allToAllVPacked, call);
  if (code != WL_OK) return code;
  const PartTable& own = comm.operation().parts(comm.rank());
  for (uint32_t rank = 0; own.refused != 0 && rank < comm.group().ranks(); ++rank) {
    const PartTable& table = comm.operation().parts(rank);
    if (table.needed <= table.room) continue;
    return fail(
        error, WL_INVALID_ARGUMENT,
        "out of rank %u has room for %llu elements, and %llu come to it; nothing has moved: "
        "call again with more room there",
        rank, text(table.room / elementBytes), text(table.needed / elementBytes));
  }
  for (uint32_t rank = 0; rank < comm.group().ranks(); ++rank) {
    stated.received_counts[rank] = static_cast<int64_t>(own.out(rank).bytes / elementBytes);
  }
  return WL_OK;
}

Code allGatherV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  const uint64_t ranks = comm.group().ranks();
  const uint64_t elementBytes = sizeOf(static_cast<DType>(stated.dtype));
  const Counts all(stated.out_counts, ranks);
  const PartLists parts = {nullptr, nullptr, stated.out_counts, nullptr, 0};
  Call call = callOf(stated, parts, error, on);
  call.descriptor = Descriptor::of(static_cast<wl_operation>(stated.operation), all.fingerprint,
                                   stated.dtype);
  call.inBytes = stated.in_elements * elementBytes;
  call.workBytes = all.sum * elementBytes * ranks;
  const Collective& collective = kKernels.collectives[WL_OP_ALL_GATHER_V];
  return comm.run(kernelFor(comm, collective, all.largest * elementBytes), call);
}

Code reduceScatterV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  const uint64_t ranks = comm.group().ranks();
  const uint64_t elementBytes = sizeOf(static_cast<DType>(stated.dtype));
  const Counts all(stated.in_counts, ranks);
  const PartLists parts = {stated.in_counts, nullptr, nullptr, nullptr, 0};
  Call call = callOf(stated, parts, error, on);
  call.descriptor =
      Descriptor::of(WL_OP_REDUCE_SCATTER_V, all.fingerprint, stated.dtype, stated.op);
  call.inBytes = all.sum * elementBytes;
  call.outBytes = stated.out_elements * elementBytes;
  call.workBytes = call.inBytes * ranks;
  const Collective& collective = kKernels.collectives[WL_OP_REDUCE_SCATTER_V];
  return comm.run(kernelFor(comm, collective, call.inBytes), call);
}

Code barrier(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  Call call;
  call.descriptor = Descriptor::of(WL_OP_BARRIER, 0);
  call.args = {nullptr, nullptr, nullptr};
  call.bytes = call.inBytes = call.outBytes = call.workBytes = 0;
  call.deadlineNs = stated.deadline_ns;
  call.error = error;
  call.on = on;
  return comm.run(kKernels.collectives[WL_OP_BARRIER].algorithms[0].kernel, call);
}

}  // namespace windlass
