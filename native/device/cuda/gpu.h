// SPDX-License-Identifier: Apache-2.0
// A GPU that ranks of this process share: its primary context, which other libraries of the process
// use too, and the kernels loaded there.
#pragma once

#include <list>
#include <mutex>

#include "native/device/cuda/cuda.h"
#include "native/memory/device.h"

namespace windlass::cuda {

// Kernels loaded on a GPU: windlass_run of one image, and the number of its blocks that run at
// once.
struct GpuKernels {
  const void* image;
  CuModule module;
  CuFunction function;
  uint32_t blocksAtOnce;
};

class Gpu {
 public:
  // Takes GPU `number` for a rank, on its thread, and keeps the context current there until
  // leave(). The first rank loads the whole `image`, so that nothing is loaded while a kernel
  // waits. WL_UNSUPPORTED: the GPU is too old. A failure leaves nothing behind.
  static Code take(const Cuda& cuda, uint32_t number, const void* image, Gpu** gpu,
                   wl_error_t* error);
  // Releases what take() took, on the same thread. Continues after failures, and returns the first
  // one.
  Code leave(wl_error_t* error);

  const Cuda& cuda() const { return *cuda_; }
  uint32_t number() const { return number_; }
  CuDevice device() const { return device_; }
  CuContext context() const { return context_; }
  DeviceKind kind() const { return kind_; }
  // Kernels of Windlass.
  const GpuKernels& own() const { return own_; }
  // Loads a library's kernels whole, for the first rank that asks. They stay until the last rank
  // leaves. The thread must have the context. Throws std::bad_alloc.
  Code load(const void* image, wl_error_t* error);
  // Returns loaded kernels; Windlass' own if `image` is nullptr.
  const GpuKernels& loaded(const void* image) const;

  // Grids of groups with several GPUs run one after another, in the same order on each GPU, so none
  // waits for peers behind another grid. This makes the stream's next grid wait for the last grid
  // on streams, unless that one ends with the event `own`.
  Code followLast(CuStream stream, CuEvent own, wl_error_t* error);
  void setLast(CuEvent event);
  // Forgets an event that will be destroyed.
  void forget(CuEvent event);

  // Converts the result of a call.
  Code check(const Called& called, wl_error_t* error) const {
    return cuda_->check(called, name_, error);
  }
  // Converts the result of a query. Sets *is to true if the work of the query's stream or event has
  // ended.
  Code checkEnd(const Called& query, bool* is, wl_error_t* error) const {
    *is = query == kCuOk;
    return query == kCuNotReady ? WL_OK : check(query, error);
  }
  // Like check(), for a call that requested `bytes` of memory.
  Code checkMemory(const Called& called, uint64_t bytes, wl_error_t* error) const {
    return cuda_->checkMemory(called, name_, bytes, error);
  }

  // The following functions make a resource, which is null after a failure.
  Code makeStream(CuStream* stream, wl_error_t* error) const {
    return make(stream, check(cuda_->cuStreamCreate(stream, kStreamNonBlocking), error));
  }
  Code makeEvent(CuEvent* event, wl_error_t* error) const {
    return make(event, check(cuda_->cuEventCreate(event, kEventDisableTiming), error));
  }
  Code makeMemory(CuAddress* memory, uint64_t bytes, wl_error_t* error) const {
    return make(memory, checkMemory(cuda_->cuMemAlloc(memory, bytes), bytes, error));
  }
  // Pinned host memory. `flags`: 0, or kHostDeviceMap.
  template <class T>
  Code makePinned(T** memory, uint64_t bytes, uint32_t flags, wl_error_t* error) const {
    void* made = nullptr;
    const Code code = check(cuda_->cuMemHostAlloc(&made, bytes, kHostPortable | flags), error);
    *memory = static_cast<T*>(made);
    return make(memory, code);
  }

 private:
  Code begin(const void* image, wl_error_t* error);
  Code loadNow(const void* image, GpuKernels* kernels, wl_error_t* error);
  template <class T>
  static Code make(T* made, Code code) {
    if (code != WL_OK) *made = T();
    return code;
  }

  mutable std::mutex mutex_;  // guards what follows, which is valid while any rank holds it
  const Cuda* cuda_ = nullptr;
  uint32_t number_ = 0;
  char name_[32] = "";  // for errors
  uint32_t holders_ = 0;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  DeviceKind kind_ = {};
  GpuKernels own_ = {};
  std::list<GpuKernels> libraries_;

  std::mutex lastMutex_;  // guards last_, which must exist while a stream is made to wait for it
  CuEvent last_ = nullptr;
};

// Calls that release a device's resources. All are made, even after failures. `code` is the first
// failure.
class GivesBack {
 public:
  GivesBack(const Gpu& gpu, wl_error_t* error) : gpu_(gpu), error_(error) {}
  void operator()(const Called& called) {
    by([&](wl_error_t* error) { return gpu_.check(called, error); });
  }
  // Runs undo(error).
  template <class Undo>
  void by(const Undo& undo) {
    const Code undone = undo(code == WL_OK ? error_ : nullptr);
    if (code == WL_OK) code = undone;
  }
  // The following functions release a resource if there is one.
  void stream(CuStream stream) {
    if (stream != nullptr) (*this)(gpu_.cuda().cuStreamDestroy(stream));
  }
  void event(CuEvent event) {
    if (event != nullptr) (*this)(gpu_.cuda().cuEventDestroy(event));
  }
  void memory(CuAddress memory) {
    if (memory != 0) (*this)(gpu_.cuda().cuMemFree(memory));
  }
  void pinned(void* memory) {
    if (memory != nullptr) (*this)(gpu_.cuda().cuMemFreeHost(memory));
  }

  Code code = WL_OK;

 private:
  const Gpu& gpu_;
  wl_error_t* const error_;
};

}  // namespace windlass::cuda
