// SPDX-License-Identifier: Apache-2.0
#include "native/comm/collectives.h"

#include "kernels/all_gather.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/scatter.h"
#include "native/comm/launch.h"

namespace windlass {

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
  if (call.inBytes <= comm.group().stageBytes()) return comm.run<AllToAllEager>(call);
  return chosen == WL_PUSH ? comm.run<AllToAllPush>(call) : comm.run<AllToAllPull>(call);
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
  return bytes <= comm.group().stageBytes() ? comm.run<BroadcastEager>(call)
                                            : comm.run<Broadcast>(call);
}

Code allGather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(WL_OP_ALL_GATHER, count, dtype);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, bytes, bytes * ranks * ranks, deadlineNs, error};
  return bytes <= comm.group().stageBytes() ? comm.run<AllGatherEager>(call)
                                            : comm.run<AllGather>(call);
}

Code reduceScatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes,
                   int32_t dtype, int32_t op, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(WL_OP_REDUCE_SCATTER, count, dtype, op);
  const Call call = {descriptor,    {in, out, nullptr},    bytes,
                     bytes * ranks, bytes * ranks * ranks, deadlineNs,
                     error};
  return call.inBytes <= comm.group().stageBytes() ? comm.run<ReduceScatterEager>(call)
                                                   : comm.run<ReduceScatter>(call);
}

Code allReduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int32_t op, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  const Descriptor descriptor = Descriptor::of(WL_OP_ALL_REDUCE, count, dtype, op, algorithm);
  const Call call = {descriptor,        {in, out, nullptr}, bytes, bytes,
                     2 * bytes * ranks, deadlineNs,         error};
  if (algorithm == WL_RING && ranks > 1) return comm.run<AllReduceRing>(call);
  if (algorithm == WL_BIDIRECTIONAL_RING && ranks > 1)
    return comm.run<AllReduceBidirectionalRing>(call);
  if (bytes <= comm.group().stageBytes()) return comm.run<AllReduceEager>(call);
  return algorithm == WL_TWO_PHASE ? comm.run<AllReduceTwoPhase>(call)
                                   : comm.run<AllReduceOnePhase>(call);
}

Code scatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
             int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_SCATTER, count, dtype, 0, 0, root);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, 0, bytes * comm.group().ranks(), deadlineNs, error};
  return comm.run<Scatter>(call);
}

Code gather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_GATHER, count, dtype, 0, 0, root);
  const Call call = {
      descriptor, {in, out, nullptr}, bytes, 0, bytes * comm.group().ranks(), deadlineNs, error};
  return comm.run<Gather>(call);
}

Code reduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t op, int32_t root, int64_t deadlineNs, wl_error_t* error) {
  const Descriptor descriptor = Descriptor::of(WL_OP_REDUCE, count, dtype, op, 0, root);
  const Call call = {descriptor, {in, out, nullptr},           bytes,
                     bytes,      bytes * comm.group().ranks(), deadlineNs,
                     error};
  return bytes <= comm.group().stageBytes() ? comm.run<ReduceEager>(call) : comm.run<Reduce>(call);
}

Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error) {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_BARRIER, 0);
  call.deadlineNs = deadlineNs;
  call.error = error;
  return comm.run<Barrier>(call);
}

}  // namespace windlass
