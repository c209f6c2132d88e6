// SPDX-License-Identifier: Apache-2.0
// The target that this library is built for, as host code sees it: what it has, and what one thread
// does on it by itself. Made once, by kernels/entry.cpp, so that nothing else knows which target it
// is; native/isa/isa.h says what each function promises.
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

  // dst = the sum of weights[s] * the row at src[s], of `count` rows of `elements` elements.
  void (*foldWeighted)(void* dst, const void* const* src, const float* weights, uint32_t count,
                       int64_t elements, DType dtype, Stores stores);

  // The code path in use, of those that the target has.
  const char* (*path)();
  // nullptr, or why a variable of the environment is not obeyed.
  const char* (*refusal)();

  // Of what kernels did; nullptr: nothing counts it.
  const Profiler* profiler;

  // Puts an operation on a stream of the Ascend device that the stream belongs to; nullptr: this is
  // none of their targets. `context` and `operation` lie on the device. 0, or why not.
  int32_t (*offload)(uint32_t cores, void* stream, void* context, void* operation);
  // The kernels of GPUs, as NVIDIA's driver loads them; nullptr: this is not their target.
  const void* image;

  bool hasGpus() const { return image != nullptr; }
};

extern const Target kTarget;

}  // namespace windlass
