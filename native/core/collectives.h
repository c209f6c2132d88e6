// SPDX-License-Identifier: Apache-2.0
// Selects the kernel that a collective runs. The caller has checked the arguments. Buffers match
// the collective's row in the table of kernels and are aligned to the dtype. They overlap only
// where the row allows it.
#pragma once

#include "native/core/launch/kernels.h"

namespace windlass {

// One call of a collective of equal parts.
struct CollectiveCall {
  wl_operation operation;  // ranks agree on it and messages name it
  const void* in;
  void* out;
  uint64_t count;  // elements of a part
  uint64_t bytes;  // bytes of a part
  int32_t dtype;
  int32_t op;
  const Algorithm* algorithm;  // one of the collective's algorithms
  int32_t root;  // or the rows of a part
  int64_t deadlineNs;
  wl_error_t* error;
  OnStream* on = nullptr;  // see Call::on
};

// The rest is inline so that the compiler can treat `in` and `out` as constants of the caller.

// Returns true if every rank's input travels with its ENTER when a part has `bytes` bytes.
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
  // A root whose part is already in place need not write it.
  const bool isThere = in == Holds::kRootsPart && reads && of.in == of.out;
  const uint64_t allBytes = of.bytes * ranks;
  // True if each rank moves one part to or from every rank.
  const bool meets = in == Holds::kParts || out == Holds::kParts;
  // Sets single members: zeroing the whole struct takes longer than the rest of this function.
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
  // With one rank, all algorithms do the same.
  const Algorithm& algorithm = ranks > 1 ? *of.algorithm : collective.algorithms[0];
  return comm.run(isEager(comm, collective, in, algorithm, of.bytes) ? collective.eager
                                                                    : algorithm.kernel,
                  call);
}

// `parts` states inCounts and outCounts.
Code allToAllV(Comm& comm, const void* in, void* out, const PartLists& parts, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);
// `parts` states inCounts and room. `received` gets one count per rank.
Code allToAllVPacked(Comm& comm, const void* in, void* out, const PartLists& parts,
                     int64_t* received, int32_t dtype, int64_t deadlineNs, wl_error_t* error);
// `counts` holds one count per rank. Ranks agree on `as` and messages name it: all-gather-v, or the
// operation that this call is a step of.
Code allGatherV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                int64_t deadlineNs, wl_error_t* error, wl_operation as = WL_OP_ALL_GATHER_V,
                OnStream* on = nullptr);
Code reduceScatterV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                    int32_t op, int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);
Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error, OnStream* on = nullptr);

}  // namespace windlass
