// SPDX-License-Identifier: Apache-2.0
#include "native/core/collectives.h"

#include <algorithm>

#include "native/base/mixed.h"

namespace windlass {
namespace {

// Returns the kernel of a collective of unequal parts whose largest input has `bytes` bytes.
const Kernel& kernelFor(const Comm& comm, const Collective& collective, uint64_t bytes) {
  const GroupConfig& config = comm.group().config();
  const uint64_t most =
      std::min(uint64_t{collective.eagerBytes} << config.eagerShift, config.eagerBytes());
  return bytes <= most ? collective.eager : collective.algorithms[0].kernel;
}

// Counts that are the same on every rank: their sum, and what ranks compare.
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

// An exchange of parts. Ranks do not know one another's counts, so they cannot decide together that
// it is small. Therefore ranks always claim its items one by one.
Call exchange(const Comm& comm, const void* in, void* out, const PartLists& parts, bool packed,
              int32_t dtype, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const uint64_t sent = Counts(parts.inCounts, ranks).sum * sizeOf(static_cast<DType>(dtype));
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_ALL_TO_ALL_V, packed ? 1 : 0, dtype);
  call.args = {in, out, nullptr};
  call.inBytes = sent;
  call.outBytes = parts.room;
  call.workBytes = std::max(kSharedWorkBytes, sent * ranks);
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.parts = &parts;
  return call;
}

}  // namespace

Code allToAllV(Comm& comm, const void* in, void* out, const PartLists& parts, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error, OnStream* on) {
  Call call = exchange(comm, in, out, parts, false, dtype, deadlineNs, error);
  call.on = on;
  return comm.run(kKernels.collectives[WL_OP_ALL_TO_ALL_V].algorithms[0].kernel, call);
}

Code allToAllVPacked(Comm& comm, const void* in, void* out, const PartLists& parts,
                     int64_t* received, int32_t dtype, int64_t deadlineNs, wl_error_t* error) {
  const Call call = exchange(comm, in, out, parts, true, dtype, deadlineNs, error);
  if (Code code = comm.run(kKernels.allToAllVPacked, call); code != WL_OK) return code;
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
                int64_t deadlineNs, wl_error_t* error, wl_operation as, OnStream* on) {
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
  call.on = on;
  const Collective& collective = kKernels.collectives[WL_OP_ALL_GATHER_V];
  return comm.run(kernelFor(comm, collective, all.largest * elementBytes), call);
}

Code reduceScatterV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                    int32_t op, int64_t deadlineNs, wl_error_t* error, OnStream* on) {
  const uint64_t ranks = comm.group().ranks();
  const Counts all(counts, ranks);
  const PartLists parts = {counts, nullptr, nullptr, nullptr, 0};
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_REDUCE_SCATTER_V, all.fingerprint, dtype, op);
  call.args = {in, out, nullptr};
  call.inBytes = all.sum * sizeOf(static_cast<DType>(dtype));
  call.outBytes = static_cast<uint64_t>(counts[comm.rank()]) * sizeOf(static_cast<DType>(dtype));
  call.workBytes = call.inBytes * ranks;
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.parts = &parts;
  call.on = on;
  const Collective& collective = kKernels.collectives[WL_OP_REDUCE_SCATTER_V];
  return comm.run(kernelFor(comm, collective, call.inBytes), call);
}

Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error, OnStream* on) {
  Call call;
  call.descriptor = Descriptor::of(WL_OP_BARRIER, 0);
  call.args = {nullptr, nullptr, nullptr};
  call.bytes = call.inBytes = call.outBytes = call.workBytes = 0;
  call.deadlineNs = deadlineNs;
  call.error = error;
  call.on = on;
  return comm.run(kKernels.collectives[WL_OP_BARRIER].algorithms[0].kernel, call);
}

}  // namespace windlass
