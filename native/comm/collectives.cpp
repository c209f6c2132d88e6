// SPDX-License-Identifier: Apache-2.0
#include "native/comm/collectives.h"

#include "kernels/all_to_all.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "native/comm/launch.h"

namespace windlass {

Code allToAll(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype, int32_t algorithm,
              int64_t deadlineNs, wl_error_t* error) {
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

Code broadcast(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype, int32_t root,
               int64_t deadlineNs, wl_error_t* error) {
  const bool isRoot = comm.rank() == static_cast<uint32_t>(root);
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_BROADCAST, count, dtype, 0, WL_STAGED, root);
  call.args = {isRoot ? in : nullptr, isRoot && in == out ? nullptr : out, nullptr};
  call.bytes = bytes;
  call.inBytes = isRoot ? bytes : 0;
  call.workBytes = bytes * comm.group().ranks();
  call.deadlineNs = deadlineNs;
  call.error = error;
  return bytes <= comm.group().stageBytes() ? comm.run<BroadcastEager>(call) : comm.run<Broadcast>(call);
}

Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error) {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_BARRIER, 0);
  call.deadlineNs = deadlineNs;
  call.error = error;
  return comm.run<Barrier>(call);
}

}  // namespace windlass
