// SPDX-License-Identifier: Apache-2.0
// C ABI: gathering, scattering and reducing collectives. Arguments are checked here, before
// anything is sent.
#include "native/abi/buffers.h"
#include "native/comm/collectives.h"

using namespace windlass;

namespace {

Code checkRoot(const wl_comm_t* comm, int32_t root, wl_error_t* error) {
  const uint32_t ranks = comm->comm.group().ranks();
  if (root >= 0 && static_cast<uint32_t>(root) < ranks) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "root %d is not in 0 to %u", root, ranks - 1);
}

// The part of a buffer of `ranks` parts that is `rank`'s own.
const void* partOf(const void* whole, uint32_t rank, uint64_t partBytes) {
  return static_cast<const unsigned char*>(whole) + rank * partBytes;
}

// A buffer of one part and one of all parts. They may overlap only where the one is the rank's own
// part of the other.
Code checkParts(const wl_comm_t* comm, const void* part, uint64_t partBytes, const char* partName,
                const void* whole, const char* wholeName, int32_t dtype, wl_error_t* error) {
  const uint32_t rank = comm->comm.rank();
  const uint64_t wholeBytes = partBytes * comm->comm.group().ranks();
  if (Code code = checkBuffer(part, partBytes, dtype, partName, error); code != WL_OK) return code;
  if (Code code = checkBuffer(whole, wholeBytes, dtype, wholeName, error); code != WL_OK)
    return code;
  if (overlap(part, partBytes, whole, wholeBytes) && part != partOf(whole, rank, partBytes)) {
    return fail(error, WL_INVALID_ARGUMENT, "%s and %s overlap; in place, %s is part %u of %s",
                partName, wholeName, partName, rank, wholeName);
  }
  return WL_OK;
}

Code checkSame(const void* in, const void* out, uint64_t bytes, int32_t dtype, wl_error_t* error) {
  if (Code code = checkBuffer(in, bytes, dtype, "in", error); code != WL_OK) return code;
  if (Code code = checkBuffer(out, bytes, dtype, "out", error); code != WL_OK) return code;
  if (in != out && overlap(in, bytes, out, bytes)) {
    return fail(error, WL_INVALID_ARGUMENT, "in and out overlap; in place they are one buffer");
  }
  return WL_OK;
}

// What every collective checks first; `total` = ranks * count elements, in bytes.
Code checkCall(const wl_comm_t* comm, uint64_t count, int32_t dtype, int64_t deadlineNs,
               uint64_t* total, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadlineNs, error); code != WL_OK) return code;
  return bytesOf(comm->comm.group().ranks(), count, dtype, total, error);
}

}  // namespace

extern "C" {

int32_t wl_all_gather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  const uint64_t bytes = total / comm->comm.group().ranks();
  if (Code code = checkParts(comm, in, bytes, "in", out, "out", dtype, error); code != WL_OK)
    return code;
  return allGather(comm->comm, in, out, count, bytes, dtype, deadline_ns, error);
}

int32_t wl_reduce_scatter(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                          int32_t op, int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  if (Code code = checkReduction(dtype, op, error); code != WL_OK) return code;
  const uint64_t bytes = total / comm->comm.group().ranks();
  if (Code code = checkParts(comm, out, bytes, "out", in, "in", dtype, error); code != WL_OK)
    return code;
  return reduceScatter(comm->comm, in, out, count, bytes, dtype, op, deadline_ns, error);
}

int32_t wl_all_reduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                      int32_t op, int32_t algorithm, int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  if (Code code = checkReduction(dtype, op, error); code != WL_OK) return code;
  const uint32_t ranks = comm->comm.group().ranks();
  const uint64_t bytes = total / ranks;
  if (Code code = checkSame(in, out, bytes, dtype, error); code != WL_OK) return code;
  const int32_t chosen = algorithm == WL_AUTO ? WL_TWO_PHASE : algorithm;
  if (chosen < WL_ONE_PHASE || chosen > WL_BIDIRECTIONAL_RING) {
    return fail(error, WL_INVALID_ARGUMENT,
                "algorithm %d is not one of all-reduce: auto, one-phase, two-phase, ring or "
                "bidirectional ring",
                algorithm);
  }
  const bool ring = chosen == WL_RING || chosen == WL_BIDIRECTIONAL_RING;
  if (ring && 2 * (ranks - 1) > kMostPhases) {
    return fail(error, WL_UNSUPPORTED,
                "a ring of %u ranks takes %u phases; at most %u, so use two-phase", ranks,
                2 * (ranks - 1), kMostPhases);
  }
  const bool staged = bytes <= kStagedAllReduce && !ring;
  if (chosen == WL_ONE_PHASE && in == out && bytes > 0 && !staged && ranks > 1) {
    return fail(error, WL_INVALID_ARGUMENT,
                "one-phase all-reduce of %llu bytes cannot be in place: every rank reads every "
                "input while outputs are "
                "written; use two-phase, or another out",
                static_cast<unsigned long long>(bytes));
  }
  return allReduce(comm->comm, in, out, count, bytes, dtype, op, chosen, deadline_ns, error);
}

int32_t wl_scatter(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                   int32_t root, int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  if (Code code = checkRoot(comm, root, error); code != WL_OK) return code;
  const uint64_t bytes = total / comm->comm.group().ranks();
  const bool isRoot = comm->comm.rank() == static_cast<uint32_t>(root);
  const Code code = isRoot ? checkParts(comm, out, bytes, "out", in, "in", dtype, error)
                           : checkBuffer(out, bytes, dtype, "out", error);
  if (code != WL_OK) return code;
  return scatter(comm->comm, isRoot ? in : nullptr, out, count, bytes, dtype, root, deadline_ns,
                 error);
}

int32_t wl_gather(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                  int32_t root, int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  if (Code code = checkRoot(comm, root, error); code != WL_OK) return code;
  const uint64_t bytes = total / comm->comm.group().ranks();
  const bool isRoot = comm->comm.rank() == static_cast<uint32_t>(root);
  const Code code = isRoot ? checkParts(comm, in, bytes, "in", out, "out", dtype, error)
                           : checkBuffer(in, bytes, dtype, "in", error);
  if (code != WL_OK) return code;
  return gather(comm->comm, in, isRoot ? out : nullptr, count, bytes, dtype, root, deadline_ns,
                error);
}

int32_t wl_reduce(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype,
                  int32_t op, int32_t root, int64_t deadline_ns, wl_error_t* error) {
  uint64_t total = 0;
  if (Code code = checkCall(comm, count, dtype, deadline_ns, &total, error); code != WL_OK)
    return code;
  if (Code code = checkRoot(comm, root, error); code != WL_OK) return code;
  if (Code code = checkReduction(dtype, op, error); code != WL_OK) return code;
  const uint64_t bytes = total / comm->comm.group().ranks();
  const bool isRoot = comm->comm.rank() == static_cast<uint32_t>(root);
  const Code code =
      isRoot ? checkSame(in, out, bytes, dtype, error) : checkBuffer(in, bytes, dtype, "in", error);
  if (code != WL_OK) return code;
  return reduce(comm->comm, in, isRoot ? out : nullptr, count, bytes, dtype, op, root, deadline_ns,
                error);
}

}  // extern "C"
