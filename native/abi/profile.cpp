// SPDX-License-Identifier: Apache-2.0
// C ABI: counters of kernels in this process, on targets that support them.
#include "native/base/profile.h"

#include <algorithm>
#include <cstring>

#include "native/abi/handles.h"
#include "native/base/target.h"

using namespace windlass;

static_assert(WL_ENGINES == kEngines, "one number of engines");

namespace {

// Calls body(profiler). Returns WL_UNSUPPORTED if the target counts nothing, and WL_RESOURCE if
// body throws std::bad_alloc.
template <class Body>
Code profile(wl_error_t* error, const Body& body) {
  if (kTarget.profiler == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "target %s does not count what kernels do; run with target a2a3sim or a5sim",
                kTarget.limits.name);
  }
  return withMemory(error, [&] { return body(*kTarget.profiler); },
                    "there is no memory for the profile");
}

void fill(const KernelProfile& from, wl_kernel_profile_t* to) {
  std::memset(to->kernel, 0, sizeof to->kernel);
  std::memcpy(to->kernel, from.kernel.data(), std::min(from.kernel.size(), sizeof to->kernel - 1));
  to->reserved = 0;
  to->runs = from.runs;
  to->cores = from.cores;
  to->cycles = from.coreCycles;
  to->overlap_cycles = from.overlapCycles;
  to->flags = from.flags;
  to->barriers = from.barriers;
  to->notifies = from.notifies;
  to->buffer_bytes = from.bufferBytes;
  for (int engine = 0; engine < kEngines; ++engine) {
    to->instructions[engine] = from.engines[engine].instructions;
    to->bytes[engine] = from.engines[engine].bytes;
    to->busy_cycles[engine] = from.engines[engine].busyCycles;
  }
}

}  // namespace

extern "C" {

int32_t wl_profile_start(int32_t traces, wl_error_t* error) {
  return profile(error, [&](const Profiler& profiler) {
    profiler.start(traces != 0);
    return WL_OK;
  });
}

int32_t wl_profile_kernels(wl_kernel_profile_t* kernels, uint32_t capacity, uint64_t* count,
                           wl_error_t* error) {
  if (Code code = checkNotNull(count, "count", error); code != WL_OK) return code;
  if (capacity > 0) {
    if (Code code = checkStruct(kernels, "kernels", error); code != WL_OK) return code;
  }
  return profile(error, [&](const Profiler& profiler) {
    const std::vector<KernelProfile> all = profiler.kernels();
    const size_t stride = capacity > 0 ? kernels->struct_size : 0;
    for (size_t i = 0; i < all.size() && i < capacity; ++i) {
      auto* kernel = reinterpret_cast<wl_kernel_profile_t*>(
          reinterpret_cast<unsigned char*>(kernels) + stride * i);
      kernel->struct_size = static_cast<uint32_t>(stride);
      fill(all[i], kernel);
    }
    *count = all.size();
    return WL_OK;
  });
}

int32_t wl_profile_trace(char* text, uint64_t capacity, uint64_t* length, wl_error_t* error) {
  if (Code code = checkNotNull(length, "length", error); code != WL_OK) return code;
  if (capacity > 0) {
    if (Code code = checkNotNull(text, "text", error); code != WL_OK) return code;
  }
  return profile(error, [&](const Profiler& profiler) {
    const std::string trace = profiler.trace();
    if (capacity > 0) std::memcpy(text, trace.data(), std::min<size_t>(trace.size(), capacity));
    *length = trace.size();
    return WL_OK;
  });
}

}  // extern "C"
