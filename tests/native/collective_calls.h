// SPDX-License-Identifier: Apache-2.0
// Collectives of equal parts by their names, with `count` elements to a part.
#pragma once

#include "windlass/windlass.h"

namespace windlass_test {

inline uint64_t partsOf(wl_comm_t* comm, uint64_t count) {
  return comm == nullptr ? count : static_cast<uint64_t>(wl_comm_size(comm)) * count;
}

inline int32_t allToAll(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                        int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_ALL_TO_ALL, in, partsOf(comm, count), out, partsOf(comm, count),
                       dtype, 0, algorithm, 0, 0, deadlineNs, error);
}

inline int32_t broadcast(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int32_t root, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_BROADCAST, in, count, out, count, dtype, 0, algorithm, root, 0,
                       deadlineNs, error);
}

inline int32_t allGather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_ALL_GATHER, in, count, out, partsOf(comm, count), dtype, 0,
                       WL_AUTO, 0, 0, deadlineNs, error);
}

inline int32_t reduceScatter(wl_comm_t* comm, const void* in, void* out, uint64_t count,
                             int32_t dtype, int32_t op, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_REDUCE_SCATTER, in, partsOf(comm, count), out, count, dtype, op,
                       WL_AUTO, 0, 0, deadlineNs, error);
}

inline int32_t allReduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int32_t op, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_ALL_REDUCE, in, count, out, count, dtype, op, algorithm, 0, 0,
                       deadlineNs, error);
}

inline int32_t scatter(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                       int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_SCATTER, in, partsOf(comm, count), out, count, dtype, 0, WL_AUTO,
                       root, 0, deadlineNs, error);
}

inline int32_t gather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_GATHER, in, count, out, partsOf(comm, count), dtype, 0, WL_AUTO,
                       root, 0, deadlineNs, error);
}

inline int32_t reduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t op, int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return wl_collective(comm, WL_OP_REDUCE, in, count, out, count, dtype, op, WL_AUTO, root, 0,
                       deadlineNs, error);
}

}  // namespace windlass_test
