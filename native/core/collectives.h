// SPDX-License-Identifier: Apache-2.0
// Selects the kernel that a collective runs. The caller has checked the arguments. Buffers match
// the collective's row in the table of kernels and are aligned to the dtype. They overlap only
// where the row allows it.
#pragma once

#include "native/core/launch/kernels.h"

namespace windlass {

// A checked call of a collective of equal parts.
struct EqualParts {
  uint64_t count;  // elements of a part
  uint64_t bytes;  // bytes of a part
  const Algorithm* algorithm;  // one of the collective's algorithms
  int32_t op;          // 0 if nothing is reduced
  int32_t rootOrRows;  // the root, or the rows of a part
};

// The next two are inline so that the compiler can treat `in` and `out` as constants of the caller.

// Returns true if every rank's input travels with its ENTER when a part has `bytes` bytes. An
// algorithm that is otherwise never in place is eager as far as any, so that it can be.
inline bool isEager(const Comm& comm, const Collective& collective, Holds in,
                    const Algorithm& algorithm, uint64_t bytes) {
  const uint64_t inBytes = isOnePart(in) ? bytes : bytes * comm.group().ranks();
  if (!algorithm.eager || !collective.eager) return false;
  const RanksAre ranks = comm.operation().ranksAre();
  return inBytes <= collective.limits.bytes(ranks) ||
         (!algorithm.inPlace && inBytes <= collective.limits.bytes(kProcessesOnCores));
}

[[gnu::always_inline]] inline Code run(Comm& comm, const Collective& collective, Holds in,
                                       Holds out, const EqualParts& of, const wl_call_t& stated,
                                       wl_error_t* error, OnStream* on) {
  const uint64_t ranks = comm.group().ranks();
  const bool isRoot = comm.rank() == static_cast<uint32_t>(of.rootOrRows);
  const bool reads = isRoot || !isRoots(in);
  const bool writes = isRoot || !isRoots(out);
  // A root whose part is already in place need not write it.
  const bool isThere = in == Holds::kRootsPart && reads && stated.in == stated.out;
  const uint64_t allBytes = of.bytes * ranks;
  // True if each rank moves one part to or from every rank.
  const bool movesParts = in == Holds::kParts || out == Holds::kParts;
  // Sets single members: zeroing the whole struct takes longer than the rest of this function.
  Call call;
  call.descriptor =
      Descriptor::of(static_cast<wl_operation>(stated.operation), of.count, stated.dtype, of.op,
                     of.algorithm->name, of.rootOrRows);
  call.args = {reads ? stated.in : nullptr, writes && !isThere ? stated.out : nullptr, nullptr};
  call.bytes = of.bytes;
  call.inBytes = !reads ? 0 : isOnePart(in) ? of.bytes : allBytes;
  call.outBytes = isOnePart(out) ? of.bytes : allBytes;
  call.inParts = in == Holds::kParts && collective.shape == PartShape::kRun;
  call.workBytes = collective.passes * allBytes * (movesParts ? ranks : 1);
  call.factor = stated.factor;
  call.deadlineNs = stated.deadline_ns;
  call.error = error;
  call.on = on;
  // With one rank, all algorithms do the same.
  const Algorithm& algorithm = ranks > 1 ? *of.algorithm : collective.algorithms[0];
  return comm.run(isEager(comm, collective, in, algorithm, of.bytes) ? collective.eager
                                                                    : algorithm.kernel,
                  call);
}

// The following functions run one collective each. The caller has checked the arguments. `on`: see
// Call::on.
Code allToAllV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on);
// Sets the call's received_counts.
Code allToAllVPacked(Comm& comm, const wl_call_t& stated, wl_error_t* error);
// This function also runs steps of operations, under the operation's name.
Code allGatherV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on);
Code reduceScatterV(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on);
Code barrier(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on);

}  // namespace windlass
