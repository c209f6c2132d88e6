// SPDX-License-Identifier: Apache-2.0
// C ABI: collectives. Arguments are checked here, before anything is sent.
#include "native/abi/handles.h"
#include "native/comm/collectives.h"

using namespace windlass;

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 62;

// bytes = parts * count * size of dtype, refused beyond 2^62.
Code bytesOf(uint64_t parts, uint64_t count, int32_t dtype, uint64_t* bytes, wl_error_t* error) {
  if (Code code = checkDType(dtype, error); code != WL_OK) return code;
  if (__builtin_mul_overflow(parts, count, bytes) ||
      __builtin_mul_overflow(*bytes, sizeOf(static_cast<DType>(dtype)), bytes) || *bytes > kMostBytes) {
    return fail(error, WL_INVALID_ARGUMENT, "count %llu is too large: more than 2^62 bytes",
                static_cast<unsigned long long>(count));
  }
  return WL_OK;
}

Code checkBuffer(const void* buffer, uint64_t bytes, int32_t dtype, const char* name, wl_error_t* error) {
  if (bytes == 0) return WL_OK;
  const uint64_t size = sizeOf(static_cast<DType>(dtype));
  const auto address = reinterpret_cast<uintptr_t>(buffer);
  if (buffer == nullptr) return fail(error, WL_INVALID_ARGUMENT, "%s is NULL", name);
  if (address % size != 0) {
    return fail(error, WL_INVALID_ARGUMENT, "%s is not aligned to its dtype's %llu bytes", name,
                static_cast<unsigned long long>(size));
  }
  if (address + bytes < address) return fail(error, WL_INVALID_ARGUMENT, "%s wraps the address space", name);
  return WL_OK;
}

bool overlap(const void* a, const void* b, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return bytes > 0 && first < second + bytes && second < first + bytes;
}

}  // namespace

extern "C" {

int32_t wl_barrier(wl_comm_t* comm, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  return barrier(comm->comm, deadline_ns, error);
}

int32_t wl_all_to_all(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype, int32_t algorithm,
                      int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const uint64_t ranks = comm->comm.group().ranks();
  uint64_t bytes = 0;
  if (Code code = bytesOf(ranks, count, dtype, &bytes, error); code != WL_OK) return code;
  if (Code code = checkBuffer(in, bytes, dtype, "in", error); code != WL_OK) return code;
  if (Code code = checkBuffer(out, bytes, dtype, "out", error); code != WL_OK) return code;
  if (overlap(in, out, bytes)) return fail(error, WL_INVALID_ARGUMENT, "in and out overlap; all-to-all is not in place");
  if (algorithm != WL_AUTO && algorithm != WL_PUSH && algorithm != WL_PULL) {
    return fail(error, WL_INVALID_ARGUMENT, "algorithm %d is not one of all-to-all: auto, push or pull", algorithm);
  }
  return allToAll(comm->comm, in, out, count, bytes / ranks, dtype, algorithm, deadline_ns, error);
}

int32_t wl_broadcast(wl_comm_t* comm, const void* in, void* out, uint64_t count, int32_t dtype, int32_t root,
                     int32_t algorithm, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const uint32_t ranks = comm->comm.group().ranks();
  if (root < 0 || static_cast<uint32_t>(root) >= ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "root %d is not in 0 to %u", root, ranks - 1);
  }
  if (algorithm != WL_AUTO && algorithm != WL_STAGED) {
    return fail(error, WL_INVALID_ARGUMENT, "algorithm %d is not one of broadcast: auto or staged", algorithm);
  }
  uint64_t bytes = 0;
  if (Code code = bytesOf(1, count, dtype, &bytes, error); code != WL_OK) return code;
  const bool isRoot = comm->comm.rank() == static_cast<uint32_t>(root);
  if (isRoot) {
    if (Code code = checkBuffer(in, bytes, dtype, "in", error); code != WL_OK) return code;
    if (in != out && overlap(in, out, bytes)) {
      return fail(error, WL_INVALID_ARGUMENT, "in and out overlap; on the root they are one buffer or apart");
    }
  }
  if (Code code = checkBuffer(out, bytes, dtype, "out", error); code != WL_OK) return code;
  return broadcast(comm->comm, in, out, count, bytes, dtype, root, deadline_ns, error);
}

}  // extern "C"
