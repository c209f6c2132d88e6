// SPDX-License-Identifier: Apache-2.0
// C ABI: collectives. Arguments are checked here, before anything is sent.
#include "native/comm/collectives.h"
#include "native/abi/buffers.h"

using namespace windlass;

extern "C" {

int32_t wl_barrier(wl_comm_t* comm, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  return barrier(comm->comm, deadline_ns, error);
}

int32_t wl_all_to_all(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t algorithm, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const uint64_t ranks = comm->comm.group().ranks();
  uint64_t bytes = 0;
  if (Code code = bytesOf(ranks, count, dtype, &bytes, error); code != WL_OK) return code;
  if (Code code = checkBuffer(in, bytes, dtype, "in", error); code != WL_OK) return code;
  if (Code code = checkBuffer(out, bytes, dtype, "out", error); code != WL_OK) return code;
  if (overlap(in, bytes, out, bytes))
    return fail(error, WL_INVALID_ARGUMENT, "in and out overlap; all-to-all is not in place");
  if (algorithm != WL_AUTO && algorithm != WL_PUSH && algorithm != WL_PULL) {
    return fail(error, WL_INVALID_ARGUMENT,
                "algorithm %d is not one of all-to-all: auto, push or pull", algorithm);
  }
  return allToAll(comm->comm, in, out, count, bytes / ranks, dtype, algorithm, deadline_ns, error);
}

int32_t wl_broadcast(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                     int32_t root, int32_t algorithm, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const uint32_t ranks = comm->comm.group().ranks();
  if (root < 0 || static_cast<uint32_t>(root) >= ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "root %d is not in 0 to %u", root, ranks - 1);
  }
  if (algorithm != WL_AUTO && algorithm != WL_STAGED) {
    return fail(error, WL_INVALID_ARGUMENT, "algorithm %d is not one of broadcast: auto or staged",
                algorithm);
  }
  uint64_t bytes = 0;
  if (Code code = bytesOf(1, count, dtype, &bytes, error); code != WL_OK) return code;
  const bool isRoot = comm->comm.rank() == static_cast<uint32_t>(root);
  if (isRoot) {
    if (Code code = checkBuffer(in, bytes, dtype, "in", error); code != WL_OK) return code;
    if (in != out && overlap(in, bytes, out, bytes)) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "in and out overlap; on the root they are one buffer or apart");
    }
  }
  if (Code code = checkBuffer(out, bytes, dtype, "out", error); code != WL_OK) return code;
  return broadcast(comm->comm, in, out, count, bytes, dtype, root, deadline_ns, error);
}

int32_t wl_exchange(wl_comm_t* comm, int32_t operation, const int64_t* own, int64_t* all,
                    uint64_t count, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  if (Code code = checkStep(operation, error); code != WL_OK) return code;
  const uint64_t ranks = comm->comm.group().ranks();
  uint64_t bytes = 0;
  if (Code code = bytesOf(ranks, count, WL_I64, &bytes, error); code != WL_OK) return code;
  if (Code code = checkBuffer(own, bytes / ranks, WL_I64, "own", error); code != WL_OK) return code;
  if (Code code = checkBuffer(all, bytes, WL_I64, "all", error); code != WL_OK) return code;
  if (overlap(own, bytes / ranks, all, bytes))
    return fail(error, WL_INVALID_ARGUMENT, "own and all overlap");
  return allGather(comm->comm, own, all, count, bytes / ranks, WL_I64, deadline_ns, error,
                   static_cast<wl_operation>(operation));
}

}  // extern "C"
