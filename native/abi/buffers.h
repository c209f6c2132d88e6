// SPDX-License-Identifier: Apache-2.0
// Checks of a collective's buffers and of its reduction.
#pragma once

#include "native/abi/handles.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/core/names.h"

namespace windlass {

constexpr uint64_t kMostBytes = uint64_t{1} << 62;

// Computes bytes = parts * count * size of dtype. Fails above 2^62 bytes.
inline Code bytesOf(uint64_t parts, uint64_t count, int32_t dtype, uint64_t* bytes,
                    wl_error_t* error) {
  if (Code code = checkDType(dtype, error)) return code;
  if (__builtin_mul_overflow(parts, count, bytes) ||
      __builtin_mul_overflow(*bytes, sizeOf(static_cast<DType>(dtype)), bytes) ||
      *bytes > kMostBytes) {
    return fail(error, WL_INVALID_ARGUMENT, "count %llu is too large: more than 2^62 bytes",
                text(count));
  }
  return WL_OK;
}

inline Code checkBuffer(const void* buffer, uint64_t bytes, int32_t dtype, const char* name,
                        wl_error_t* error) {
  if (bytes == 0) return WL_OK;
  const uint64_t size = sizeOf(static_cast<DType>(dtype));
  const auto address = reinterpret_cast<uintptr_t>(buffer);
  if (buffer == nullptr) return fail(error, WL_INVALID_ARGUMENT, "%s is NULL", name);
  if ((address & (size - 1)) != 0) {  // sizes are powers of two
    return fail(error, WL_INVALID_ARGUMENT, "%s is not aligned to its dtype's %llu bytes", name,
                text(size));
  }
  constexpr uint64_t kEnd = uint64_t{1} << Place::kOffsetBits;
  if (address >= kEnd || bytes > kEnd - address) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s, %llu bytes at %#llx, reaches beyond what a process can address; give the "
                "address and the count of memory that it has",
                name, text(bytes), text(address));
  }
  return WL_OK;
}

inline bool overlap(const void* a, uint64_t aBytes, const void* b, uint64_t bBytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return aBytes > 0 && bBytes > 0 && first < second + bBytes && second < first + aBytes;
}

// A buffer of a rank, for errors.
struct Buffer {
  const char* name;  // "in", "out"
  uint64_t elements;
};

// Error for two buffers of a call that overlap. `rule` says how they may.
[[gnu::cold]] inline Code badOverlap(const wl_call_t& call, const Buffer& a, const Buffer& b,
                                     const char* rule, wl_error_t* error) {
  const char* dtype = dtypeName(call.dtype);
  return fail(error, WL_INVALID_ARGUMENT, "%s: %s (%llu x %s) overlaps %s (%llu x %s); %s",
              callName(call.operation), a.name, text(a.elements), dtype, b.name, text(b.elements),
              dtype, rule);
}

// Returns the error for a rank's part that overlaps the buffer of all parts, but not in place.
[[gnu::cold]] inline Code badPartOverlap(const wl_call_t& call, const Buffer& part, uint32_t rank,
                                         const Buffer& whole, wl_error_t* error) {
  char rule[64];
  Text(rule, sizeof rule).add("in place, %s is part %u of %s", part.name, rank, whole.name);
  return badOverlap(call, part, whole, rule, error);
}

constexpr const char* kMustBeApart = "they must be apart, it does not work in place";

// Checks that the target reduces the call's dtype with its op.
inline Code checkReduction(const wl_call_t& call, wl_error_t* error) {
  const int32_t dtype = call.dtype;
  const int32_t op = call.op;
  if (Code code = checkDType(dtype, error)) return code;
  if (op < 0 || op >= WL_REDUCE_OP_COUNT)
    return fail(error, WL_INVALID_ARGUMENT, "%s: op %d is unknown",
                callName(call.operation), op);
  const auto of = static_cast<DType>(dtype);
  const auto by = static_cast<ReduceOp>(op);
  const bool hasFactors =
      by == ReduceOp::kPremultipliedSum && call.operation != WL_OP_REDUCE_SCATTER_V;
  if (!(hasFactors ? isFloat(of) : canReduce(of, by))) {
    return fail(error, WL_UNSUPPORTED, "%s: dtype %s doesn't reduce with %s",
                callName(call.operation), dtypeName(dtype), reduceOpName(op));
  }
  const bool scans = call.operation == WL_OP_SCAN || call.operation == WL_OP_EXCLUSIVE_SCAN;
  if (scans && by == ReduceOp::kAvg) {
    return fail(error, WL_UNSUPPORTED,
                "%s: avg does not scan; scan with sum, and divide by the number of ranks",
                callName(call.operation));
  }
  if (!kTarget.limits.hasReduce(of, by)) {
    if (isBitwise(by)) {
      return fail(error, WL_UNSUPPORTED,
                  "%s: %s has no bitwise instructions, so dtype %s doesn't reduce with %s",
                  callName(call.operation), kTarget.limits.name, dtypeName(dtype),
                  reduceOpName(op));
    }
    return fail(error, WL_UNSUPPORTED, "%s: %s has no arithmetic in which dtype %s reduces",
                callName(call.operation), kTarget.limits.name, dtypeName(dtype));
  }
  return WL_OK;
}

}  // namespace windlass
