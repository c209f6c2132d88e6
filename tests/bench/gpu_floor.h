// SPDX-License-Identifier: Apache-2.0
// What a GPU takes for the bytes of an operation by itself: copies of the driver's side by side, an
// empty kernel, plain copies and casts by kernels. Times are of the host, from the first call to
// the end of what was asked for.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "native/device/cuda/cuda.h"
#include "windlass/windlass.h"

namespace windlass_test {

class GpuFloor {
 public:
  using Cuda = windlass::cuda::Cuda;
  using CuAddress = windlass::cuda::CuAddress;

  // Device 0, whose context is current on this thread until the end. `image` is gpu_floor.cu as
  // PTX. If it does not load, the floor consists of copies.
  explicit GpuFloor(const std::string& image) {
    must(Cuda::find(&cuda_, nullptr));
    must(cuda_->cuDevicePrimaryCtxRetain(&context_, 0));
    must(cuda_->cuCtxPushCurrent(context_));
    std::ifstream file(image, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    launch_ = reinterpret_cast<Launch*>(dlsym(driver, "cuLaunchKernel"));
    if (launch_ == nullptr || text.empty() ||
        cuda_->cuModuleLoadData(&module_, text.c_str()) != windlass::cuda::kCuOk) {
      module_ = nullptr;
      return;
    }
    must(cuda_->cuModuleGetFunction(&nothing_, module_, "nothing"));
    must(cuda_->cuModuleGetFunction(&copy_, module_, "copy"));
    must(cuda_->cuModuleGetFunction(&toBf16_, module_, "toBf16"));
  }
  ~GpuFloor() {
    for (const auto stream : streams_) cuda_->cuStreamDestroy(stream);
    for (const CuAddress memory : memory_) cuda_->cuMemFree(memory);
    if (module_ != nullptr) cuda_->cuModuleUnload(module_);
    cuda_->cuCtxPopCurrent(&context_);
    cuda_->cuDevicePrimaryCtxRelease(0);
  }
  GpuFloor(const GpuFloor&) = delete;
  GpuFloor& operator=(const GpuFloor&) = delete;

  bool hasKernels() const { return module_ != nullptr; }
  uint64_t freeBytes() const {
    size_t free = 0;
    size_t total = 0;
    must(cuda_->cuMemGetInfo(&free, &total));
    return free;
  }
  // Until the end.
  void* allocate(uint64_t bytes) {
    CuAddress made = 0;
    must(cuda_->cuMemAlloc(&made, bytes));
    memory_.push_back(made);
    return reinterpret_cast<void*>(made);
  }
  // Streams for that many ranks.
  void openStreams(size_t count) {
    while (streams_.size() < count) {
      windlass::cuda::CuStream made = nullptr;
      must(cuda_->cuStreamCreate(&made, windlass::cuda::kStreamNonBlocking));
      streams_.push_back(made);
    }
  }

  // Each copy on a stream of its own.
  void copies(const std::vector<void*>& to, const std::vector<void*>& from, uint64_t bytes) const {
    for (size_t i = 0; i < to.size(); ++i)
      must(cuda_->cuMemcpyAsync(addressOf(to[i]), addressOf(from[i]), bytes, streams_[i]));
    awaitStreams(to.size());
  }
  void emptyKernel() const {
    must(launch_(nothing_, 1, 1, 1, 1, 1, 1, 0, streams_[0], nullptr, nullptr));
    awaitStreams(1);
  }
  // Copies by kernels, one after the other. Each copies `bytes` bytes, a multiple of 16.
  void copyByKernels(const std::vector<void*>& to, const std::vector<void*>& from,
                     uint64_t bytes) const {
    onVectors(copy_, to, from, bytes / 16);
  }
  // The same of casts, of `elements` of f32 each, a multiple of 4.
  void castByKernels(const std::vector<void*>& to, const std::vector<void*>& from,
                     uint64_t elements) const {
    onVectors(toBf16_, to, from, elements / 4);
  }

 private:
  using Launch = int(windlass::cuda::CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, unsigned, windlass::cuda::CuStream, void**, void**);

  static void must(int32_t result) {
    if (result == 0) return;
    std::fprintf(stderr, "the driver says %d\n", result);
    std::abort();
  }
  static CuAddress addressOf(const void* memory) { return reinterpret_cast<CuAddress>(memory); }
  void onVectors(windlass::cuda::CuFunction kernel, std::vector<void*> to, std::vector<void*> from,
                 uint64_t vectors) const {
    const auto blocks = static_cast<unsigned>(std::min<uint64_t>((vectors + 511) / 512, 4096));
    for (size_t i = 0; i < to.size(); ++i) {
      void* arguments[] = {&from[i], &to[i], &vectors};
      must(launch_(kernel, blocks, 1, 1, 512, 1, 1, 0, streams_[0], arguments, nullptr));
    }
    awaitStreams(1);
  }
  void awaitStreams(size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      int32_t result = windlass::cuda::kCuNotReady;
      while (result == windlass::cuda::kCuNotReady) result = cuda_->cuStreamQuery(streams_[i]);
      must(result);
    }
  }

  const Cuda* cuda_ = nullptr;
  windlass::cuda::CuContext context_ = nullptr;
  windlass::cuda::CuModule module_ = nullptr;
  windlass::cuda::CuFunction nothing_ = nullptr;
  windlass::cuda::CuFunction copy_ = nullptr;
  windlass::cuda::CuFunction toBf16_ = nullptr;
  Launch* launch_ = nullptr;
  std::vector<windlass::cuda::CuStream> streams_;
  std::vector<CuAddress> memory_;
};

}  // namespace windlass_test
