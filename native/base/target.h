// SPDX-License-Identifier: Apache-2.0
// Host-side interface to the target that this library is built for: its limits, and the operations
// of one thread. kernels/entry.cpp defines it, so that other code does not depend on the target.
// native/isa/isa.h documents the functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

struct Profiler;  // native/base/profile.h

struct Target {
  Limits limits;

  void (*copy)(void* dst, const void* src, size_t bytes);
  void (*move)(const StridedView* dst, uint32_t ndst, const StridedView& src, DType wire,
               Stores stores);
  void (*fold)(const StridedView* dst, uint32_t ndst, const StridedView* src, uint32_t nsrc,
               ReduceOp op, DType wire, Stores stores);

  // dst = the sum of weights[s] * src[s] over `count` rows of `elements` elements each.
  void (*foldWeighted)(void* dst, const void* const* src, const float* weights, uint32_t count,
                       int64_t elements, DType dtype, Stores stores);

  // Name of the code path in use, among those of the target.
  const char* (*path)();
  // Error in the environment variable that selects the code path; nullptr if there is none.
  const char* (*refusal)();

  // Counters of kernels; nullptr if the target does not count.
  const Profiler* profiler;

  // Enqueues an operation on a stream of an Ascend device. `context` and `operation` lie on the
  // stream's device. Returns 0, or an error code. nullptr on other targets.
  int32_t (*offload)(uint32_t cores, void* stream, void* context, void* operation);
  // GPU kernels, in a form that NVIDIA's driver loads; nullptr on other targets.
  const void* image;

  bool hasGpus() const { return image != nullptr; }
};

extern const Target kTarget;

}  // namespace windlass
