// SPDX-License-Identifier: Apache-2.0
// Which kernel a collective runs. Arguments have been checked: buffers hold what the collective's
// row in the table of kernels says, do not overlap but where that is allowed, and are aligned to
// the dtype.
#pragma once

#include "native/core/launch/kernels.h"

namespace windlass {

// One call of a collective of equal parts.
struct CollectiveCall {
  wl_operation operation;  // what ranks agree on and messages name
  const void* in;
  void* out;
  uint64_t count;  // elements of a part
  uint64_t bytes;  // of a part
  int32_t dtype;
  int32_t op;
  const Algorithm* algorithm;  // of the collective's
  int32_t root;  // or the rows of a part
  int64_t deadlineNs;
  wl_error_t* error;
  OnStream* on = nullptr;  // as Call has it
};

// What follows is inline, so that `in` and `out`, which are the collective's, may be constants of
// the caller's.

// Whether every rank's input rides with its ENTER, in a call of so many bytes a part.
inline bool isEager(const Comm& comm, const Collective& collective, Holds in,
                    const Algorithm& algorithm, uint64_t bytes) {
  const uint64_t inBytes = isOnePart(in) ? bytes : bytes * comm.group().ranks();
  const GroupConfig& config = comm.group().config();
  return algorithm.eager && collective.eager &&
         inBytes <= uint64_t{collective.eagerBytes} << config.eagerShift &&
         inBytes <= config.eagerBytes();
}

inline Code run(Comm& comm, const Collective& collective, Holds in, Holds out,
                const CollectiveCall& of) {
  const uint64_t ranks = comm.group().ranks();
  const bool isRoot = comm.rank() == static_cast<uint32_t>(of.root);
  const bool reads = isRoot || !isRoots(in);
  const bool writes = isRoot || !isRoots(out);
  // What a root reads of one part for all ranks, in place it need not write.
  const bool isThere = in == Holds::kRootsPart && reads && of.in == of.out;
  const uint64_t allBytes = of.bytes * ranks;
  // Each rank moves what all ranks have for it, or it for them.
  const bool meets = in == Holds::kParts || out == Holds::kParts;
  // Member by member: to zero all of it first takes longer than all else here.
  Call call;
  call.descriptor =
      Descriptor::of(of.operation, of.count, of.dtype, of.op, of.algorithm->name, of.root);
  call.args = {reads ? of.in : nullptr, writes && !isThere ? of.out : nullptr, nullptr};
  call.bytes = of.bytes;
  call.inBytes = !reads ? 0 : isOnePart(in) ? of.bytes : allBytes;
  call.outBytes = isOnePart(out) ? of.bytes : allBytes;
  call.inParts = in == Holds::kParts;
  call.workBytes = collective.passes * allBytes * (meets ? ranks : 1);
  call.deadlineNs = of.deadlineNs;
  call.error = of.error;
  call.on = of.on;
  // One rank has nobody to tell the algorithms apart.
  const Algorithm& algorithm = ranks > 1 ? *of.algorithm : collective.algorithms[0];
  return comm.run(isEager(comm, collective, in, algorithm, of.bytes) ? collective.eager
                                                                    : algorithm.kernel,
                  call);
}

// `parts` states inCounts and outCounts.
Code allToAllV(Comm& comm, const void* in, void* out, const PartLists& parts, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);
// `parts` states inCounts and room; `received` gets a count for each rank.
Code allToAllVPacked(Comm& comm, const void* in, void* out, const PartLists& parts,
                     int64_t* received, int32_t dtype, int64_t deadlineNs, wl_error_t* error);
// `counts` holds one for each rank. `as` is what ranks agree on and messages name: an operation
// that this is a step of, or all-gather-v itself.
Code allGatherV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                int64_t deadlineNs, wl_error_t* error, wl_operation as = WL_OP_ALL_GATHER_V,
                OnStream* on = nullptr);
Code reduceScatterV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                    int32_t op, int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);
Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);

}  // namespace windlass
