// SPDX-License-Identifier: Apache-2.0
// Calls of wl_submit, with a parameter for each field that an operation uses. Then collectives of
// equal parts by their names, with `count` elements to a part.
#pragma once

#include "windlass/windlass.h"

namespace windlass_test {

inline wl_call_t callOf(int32_t operation, int64_t deadlineNs) {
  wl_call_t call = {};
  call.struct_size = sizeof call;
  call.operation = operation;
  call.deadline_ns = deadlineNs;
  return call;
}
inline wl_call_t callOf(int32_t operation, const void* in, uint64_t inElements, void* out,
                        uint64_t outElements, int32_t dtype, int64_t deadlineNs) {
  wl_call_t call = callOf(operation, deadlineNs);
  call.in = in;
  call.in_elements = inElements;
  call.out = out;
  call.out_elements = outElements;
  call.dtype = dtype;
  return call;
}
inline int32_t submitOn(wl_comm_t* comm, uint64_t stream, wl_call_t call, uint64_t* ticket,
                       wl_error_t* error) {
  call.stream = stream;
  call.ticket = ticket;
  return wl_submit(comm, &call, error);
}

inline int32_t callBarrier(wl_comm_t* comm, int64_t deadlineNs, wl_error_t* error) {
  const wl_call_t call = callOf(WL_OP_BARRIER, deadlineNs);
  return wl_submit(comm, &call, error);
}

inline wl_call_t collectiveOf(int32_t operation, const void* in, uint64_t inElements, void* out,
                              uint64_t outElements, int32_t dtype, int32_t op, int32_t algorithm,
                              int32_t root, int64_t rows, int64_t deadlineNs) {
  wl_call_t call = callOf(operation, in, inElements, out, outElements, dtype, deadlineNs);
  call.op = op;
  call.algorithm = algorithm;
  call.root = root;
  call.rows = rows;
  return call;
}
inline int32_t callCollective(wl_comm_t* comm, int32_t operation, const void* in,
                              uint64_t inElements, void* out, uint64_t outElements, int32_t dtype,
                              int32_t op, int32_t algorithm, int32_t root, int64_t rows,
                              int64_t deadlineNs, wl_error_t* error) {
  const wl_call_t call = collectiveOf(operation, in, inElements, out, outElements, dtype, op,
                                      algorithm, root, rows, deadlineNs);
  return wl_submit(comm, &call, error);
}
inline int32_t enqueueCollective(wl_comm_t* comm, uint64_t stream, int32_t operation,
                                 const void* in, uint64_t inElements, void* out,
                                 uint64_t outElements, int32_t dtype, int32_t op,
                                 int32_t algorithm, int32_t root, int64_t rows, int64_t deadlineNs,
                                 uint64_t* ticket, wl_error_t* error) {
  const wl_call_t call =
      collectiveOf(operation, in, inElements, out, outElements, dtype, op, algorithm, root, rows,
                   deadlineNs);
  return submitOn(comm, stream, call, ticket, error);
}

inline wl_call_t allToAllVOf(const void* in, uint64_t inElements, const int64_t* inCounts,
                             const int64_t* inOffsets, void* out, uint64_t outElements,
                             const int64_t* outCounts, const int64_t* outOffsets, int32_t dtype,
                             int64_t deadlineNs) {
  wl_call_t call =
      callOf(WL_OP_ALL_TO_ALL_V, in, inElements, out, outElements, dtype, deadlineNs);
  call.in_counts = inCounts;
  call.in_offsets = inOffsets;
  call.out_counts = outCounts;
  call.out_offsets = outOffsets;
  return call;
}
inline int32_t callAllToAllV(wl_comm_t* comm, const void* in, uint64_t inElements,
                             const int64_t* inCounts, const int64_t* inOffsets, void* out,
                             uint64_t outElements, const int64_t* outCounts,
                             const int64_t* outOffsets, int32_t dtype, int64_t deadlineNs,
                             wl_error_t* error) {
  const wl_call_t call = allToAllVOf(in, inElements, inCounts, inOffsets, out, outElements,
                                     outCounts, outOffsets, dtype, deadlineNs);
  return wl_submit(comm, &call, error);
}
inline int32_t enqueueAllToAllV(wl_comm_t* comm, uint64_t stream, const void* in,
                                uint64_t inElements, const int64_t* inCounts,
                                const int64_t* inOffsets, void* out, uint64_t outElements,
                                const int64_t* outCounts, const int64_t* outOffsets, int32_t dtype,
                                int64_t deadlineNs, uint64_t* ticket, wl_error_t* error) {
  const wl_call_t call =
      allToAllVOf(in, inElements, inCounts, inOffsets, out, outElements, outCounts, outOffsets,
                  dtype, deadlineNs);
  return submitOn(comm, stream, call, ticket, error);
}
inline int32_t callAllToAllVPacked(wl_comm_t* comm, const void* in, uint64_t inElements,
                                   const int64_t* inCounts, const int64_t* inOffsets, void* out,
                                   uint64_t outElements, int64_t* receivedCounts, int32_t dtype,
                                   int64_t deadlineNs, wl_error_t* error) {
  wl_call_t call = allToAllVOf(in, inElements, inCounts, inOffsets, out, outElements, nullptr,
                               nullptr, dtype, deadlineNs);
  call.received_counts = receivedCounts;
  return wl_submit(comm, &call, error);
}

inline wl_call_t allGatherVOf(const void* in, uint64_t inElements, void* out, uint64_t outElements,
                              const int64_t* counts, int32_t dtype, int64_t deadlineNs) {
  wl_call_t call =
      callOf(WL_OP_ALL_GATHER_V, in, inElements, out, outElements, dtype, deadlineNs);
  call.out_counts = counts;
  return call;
}
inline int32_t callAllGatherV(wl_comm_t* comm, const void* in, uint64_t inElements, void* out,
                              uint64_t outElements, const int64_t* counts, int32_t dtype,
                              int64_t deadlineNs, wl_error_t* error) {
  const wl_call_t call =
      allGatherVOf(in, inElements, out, outElements, counts, dtype, deadlineNs);
  return wl_submit(comm, &call, error);
}
inline int32_t enqueueAllGatherV(wl_comm_t* comm, uint64_t stream, const void* in,
                                 uint64_t inElements, void* out, uint64_t outElements,
                                 const int64_t* counts, int32_t dtype, int64_t deadlineNs,
                                 uint64_t* ticket, wl_error_t* error) {
  const wl_call_t call =
      allGatherVOf(in, inElements, out, outElements, counts, dtype, deadlineNs);
  return submitOn(comm, stream, call, ticket, error);
}

inline wl_call_t reduceScatterVOf(const void* in, uint64_t inElements, void* out,
                                  uint64_t outElements, const int64_t* counts, int32_t dtype,
                                  int32_t op, int64_t deadlineNs) {
  wl_call_t call =
      callOf(WL_OP_REDUCE_SCATTER_V, in, inElements, out, outElements, dtype, deadlineNs);
  call.in_counts = counts;
  call.op = op;
  return call;
}
inline int32_t callReduceScatterV(wl_comm_t* comm, const void* in, uint64_t inElements, void* out,
                                  uint64_t outElements, const int64_t* counts, int32_t dtype,
                                  int32_t op, int64_t deadlineNs, wl_error_t* error) {
  const wl_call_t call =
      reduceScatterVOf(in, inElements, out, outElements, counts, dtype, op, deadlineNs);
  return wl_submit(comm, &call, error);
}
inline int32_t enqueueReduceScatterV(wl_comm_t* comm, uint64_t stream, const void* in,
                                     uint64_t inElements, void* out, uint64_t outElements,
                                     const int64_t* counts, int32_t dtype, int32_t op,
                                     int64_t deadlineNs, uint64_t* ticket, wl_error_t* error) {
  const wl_call_t call =
      reduceScatterVOf(in, inElements, out, outElements, counts, dtype, op, deadlineNs);
  return submitOn(comm, stream, call, ticket, error);
}

// A step of an operation, with `count` words of each rank.
inline int32_t callExchange(wl_comm_t* comm, int32_t operation, const int64_t* own, int64_t* all,
                            uint64_t count, int64_t deadlineNs, wl_error_t* error) {
  const uint64_t ranks = comm == nullptr ? 1 : static_cast<uint64_t>(wl_comm_size(comm));
  const wl_call_t call = callOf(operation, own, count, all, count * ranks, WL_I64, deadlineNs);
  return wl_submit(comm, &call, error);
}
// A step of an operation, with counts[rank] bytes of each rank.
inline int32_t callExchangeV(wl_comm_t* comm, int32_t operation, const void* own,
                             uint64_t ownBytes, void* all, uint64_t allBytes,
                             const int64_t* counts, int64_t deadlineNs, wl_error_t* error) {
  wl_call_t call = callOf(operation, own, ownBytes, all, allBytes, WL_U8, deadlineNs);
  call.out_counts = counts;
  return wl_submit(comm, &call, error);
}

inline uint64_t partsOf(wl_comm_t* comm, uint64_t count) {
  return comm == nullptr ? count : static_cast<uint64_t>(wl_comm_size(comm)) * count;
}

inline int32_t allToAll(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                        int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_ALL_TO_ALL, in, partsOf(comm, count), out, partsOf(comm, count),
                        dtype, 0, algorithm, 0, 0, deadlineNs, error);
}

inline int32_t broadcast(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int32_t root, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_BROADCAST, in, count, out, count, dtype, 0, algorithm, root, 0,
                        deadlineNs, error);
}

inline int32_t allGather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_ALL_GATHER, in, count, out, partsOf(comm, count), dtype, 0,
                        WL_AUTO, 0, 0, deadlineNs, error);
}

inline int32_t reduceScatter(wl_comm_t* comm, const void* in, void* out, uint64_t count,
                             int32_t dtype, int32_t op, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_REDUCE_SCATTER, in, partsOf(comm, count), out, count, dtype, op,
                        WL_AUTO, 0, 0, deadlineNs, error);
}

inline int32_t allReduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                         int32_t op, int32_t algorithm, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_ALL_REDUCE, in, count, out, count, dtype, op, algorithm, 0, 0,
                        deadlineNs, error);
}

inline int32_t scatter(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                       int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_SCATTER, in, partsOf(comm, count), out, count, dtype, 0,
                        WL_AUTO, root, 0, deadlineNs, error);
}

inline int32_t gather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_GATHER, in, count, out, partsOf(comm, count), dtype, 0, WL_AUTO,
                        root, 0, deadlineNs, error);
}

inline int32_t reduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t op, int32_t root, int64_t deadlineNs, wl_error_t* error) {
  return callCollective(comm, WL_OP_REDUCE, in, count, out, count, dtype, op, WL_AUTO, root, 0,
                        deadlineNs, error);
}

}  // namespace windlass_test
