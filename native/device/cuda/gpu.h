// SPDX-License-Identifier: Apache-2.0
// A GPU as the ranks of this process share it: its primary context, which other libraries of the
// process have too, and the kernels that are loaded there.
#pragma once

#include <list>
#include <mutex>

#include "native/device/cuda/cuda.h"
#include "native/memory/device.h"

namespace windlass::cuda {

// Kernels that a GPU has loaded: windlass_run of one image, and how many of its blocks run at once.
struct GpuKernels {
  const void* image;
  CuModule module;
  CuFunction function;
  uint32_t blocksAtOnce;
};

class Gpu {
 public:
  // Takes GPU `number` for a rank, whose thread this is, and has its context current on it until
  // leave(). The first one loads `image`, whole, so that nothing is loaded while a kernel waits.
  // WL_UNSUPPORTED: it is too old. A failure leaves nothing behind.
  static Code take(const Cuda& cuda, uint32_t number, const void* image, Gpu** gpu,
                   wl_error_t* error);
  // On the thread that took it. Gives back what that took, whatever fails, and tells the first
  // failure.
  Code leave(wl_error_t* error);

  const Cuda& cuda() const { return *cuda_; }
  uint32_t number() const { return number_; }
  CuDevice device() const { return device_; }
  CuContext context() const { return context_; }
  DeviceKind kind() const { return kind_; }
  // Those of Windlass.
  const GpuKernels& own() const { return own_; }
  // Those of a library, loaded whole by the first rank that asks for them, and there until the last
  // rank leaves. A thread that has the context. Throws std::bad_alloc.
  Code load(const void* image, wl_error_t* error);
  // The same once they are loaded; Windlass' own where `image` is nullptr.
  const GpuKernels& loaded(const void* image) const;

  // Grids of groups that have several GPUs come one after another on each, in one order on all of
  // them: so none waits for peers behind another one there. A stream's next grid begins after the
  // last one on streams, unless that is its own, which ends with the event `own`.
  Code followLast(CuStream stream, CuEvent own, wl_error_t* error);
  void setLast(CuEvent event);
  // The event is about to go.
  void forget(CuEvent event);

  // What a call comes to that returned `result`.
  Code check(CuResult result, const char* call, wl_error_t* error) const;
  // The same of one that asked for `bytes` of memory.
  Code checkMemory(CuResult result, const char* call, uint64_t bytes, wl_error_t* error) const;

 private:
  Code begin(const void* image, wl_error_t* error);
  Code loadNow(const void* image, GpuKernels* kernels, wl_error_t* error);
  Code attribute(int32_t which, int32_t* value, wl_error_t* error) const;

  mutable std::mutex mutex_;  // guards what follows, which lasts as long as anybody holds it
  const Cuda* cuda_ = nullptr;
  uint32_t number_ = 0;
  uint32_t holders_ = 0;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  DeviceKind kind_ = {};
  GpuKernels own_ = {};
  std::list<GpuKernels> libraries_;

  std::mutex lastMutex_;  // guards it, and that it is there while a stream is told to wait for it
  CuEvent last_ = nullptr;
};

// Calls that give back what a device has: all are made, whatever fails, and the first failure is
// told, which may be that of `before` them.
class GivesBack {
 public:
  GivesBack(const Gpu& gpu, wl_error_t* error, Code before = WL_OK)
      : code(before), gpu_(gpu), error_(error) {}
  void operator()(CuResult result, const char* call) {
    const Code undone = gpu_.check(result, call, code == WL_OK ? error_ : nullptr);
    if (code == WL_OK) code = undone;
  }

  Code code;

 private:
  const Gpu& gpu_;
  wl_error_t* const error_;
};

}  // namespace windlass::cuda
