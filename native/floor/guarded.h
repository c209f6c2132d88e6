// SPDX-License-Identifier: Apache-2.0
// Code that the floor's ABI functions share: checks that throw, and the mapping of exceptions to
// error codes.
#pragma once

#include <cstring>
#include <new>
#include <stdexcept>

#include "native/base/dtype.h"
#include "native/base/error.h"
#include "native/base/target.h"
#include "native/floor/threads.h"
#include "windlass/windlass.h"

namespace windlass::floor {

inline constexpr int64_t kUnitStride = 1;

// A view of `count` contiguous elements.
inline StridedView rowOf(const void* data, DType dtype, const int64_t& count) {
  return {const_cast<void*>(data), dtype, 1, &count, &kUnitStride};
}

// Runs `work` and returns WL_OK, or the code of the exception that it throws.
template <class Work>
int32_t guarded(wl_error_t* error, const Work& work) {
  try {
    work();
    return WL_OK;
  } catch (const Refused& e) {
    return fail(error, e.code, "%s", e.what());
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "no memory to measure the floor: measure a smaller size");
  } catch (const std::exception& e) {
    return fail(error, WL_INTERNAL, "%s", e.what());
  }
}

inline void require(bool holds, const char* message) {
  if (!holds) throw Refused(WL_INVALID_ARGUMENT, message);
}

inline bool isDType(int32_t dtype) {
  return dtype >= 0 && dtype < WL_DTYPE_COUNT;
}

inline void checkEqual(const void* out, const void* in, uint64_t bytes) {
  if (std::memcmp(out, in, bytes) != 0) throw std::logic_error("the floor copied wrong bytes");
}

// Kind of stores for an operation that writes this many bytes.
inline Stores storesOf(uint64_t written, std::size_t threads) {
  return written / threads >= kTarget.limits.streamingBytes ? Stores::kStreaming : Stores::kCached;
}

}  // namespace windlass::floor
