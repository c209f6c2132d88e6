// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcudart.so.13, NVIDIA's runtime: the calls of it that examples make, over the
// driver beside it, which is the stand-in of tests/cuda. As NVIDIA's, it uses primary contexts.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "native/device/cuda/cuda.h"

using windlass::cuda::CuAddress;
using windlass::cuda::CuContext;
using windlass::cuda::CuResult;
using windlass::cuda::CuStream;
using windlass::cuda::Cuda;

namespace {

constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr int kNoDriver = 35;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidDirection = 21;
constexpr int kMostDevices = 64;

std::mutex mutex;
thread_local int current = 0;

// call(driver) in the context of the thread's device.
template <class Call>
int inContext(Call call) {
  const Cuda* cuda = nullptr;
  if (Cuda::find(&cuda, nullptr) != WL_OK) return kNoDriver;
  CuContext context = nullptr;
  {
    // Primary contexts stay until the process ends.
    const std::lock_guard<std::mutex> lock(mutex);
    static CuContext contexts[kMostDevices];
    CuContext& own = contexts[current];
    if (own == nullptr) {
      if (const int result = cuda->cuDevicePrimaryCtxRetain(&own, current); result != 0)
        return result;
    }
    context = own;
  }
  if (const int result = cuda->cuCtxPushCurrent(context); result != 0) return result;
  const int result = call(*cuda);
  cuda->cuCtxPopCurrent(&context);
  return result;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int cudaSetDevice(int device) {
  if (device < 0 || device >= kMostDevices) return kInvalidDevice;
  current = device;
  return 0;
}
int cudaStreamCreateWithFlags(CuStream* stream, unsigned flags) {
  return inContext([&](const Cuda& cuda) { return cuda.cuStreamCreate(stream, flags); });
}
int cudaStreamDestroy(CuStream stream) {
  return inContext([&](const Cuda& cuda) { return cuda.cuStreamDestroy(stream); });
}
int cudaStreamSynchronize(CuStream stream) {
  for (;;) {
    const int result = inContext([&](const Cuda& cuda) { return cuda.cuStreamQuery(stream); });
    if (result != windlass::cuda::kCuNotReady) return result;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}
int cudaMalloc(void** memory, size_t bytes) {
  return inContext([&](const Cuda& cuda) {
    CuAddress address = 0;
    const int result = cuda.cuMemAlloc(&address, bytes);
    *memory = reinterpret_cast<void*>(address);
    return result;
  });
}
int cudaFree(void* memory) {
  return inContext([&](const Cuda& cuda) { return cuda.cuMemFree(reinterpret_cast<CuAddress>(memory)); });
}
int cudaMallocHost(void** memory, size_t bytes) {
  return inContext([&](const Cuda& cuda) { return cuda.cuMemHostAlloc(memory, bytes, 0); });
}
int cudaFreeHost(void* memory) {
  return inContext([&](const Cuda& cuda) { return cuda.cuMemFreeHost(memory); });
}
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, CuStream stream) {
  return inContext([&](const Cuda& cuda) -> int {
    if (kind == kHostToDevice)
      return cuda.cuMemcpyHtoDAsync(reinterpret_cast<CuAddress>(to), from, bytes, stream);
    if (kind == kDeviceToHost)
      return cuda.cuMemcpyDtoHAsync(to, reinterpret_cast<CuAddress>(from), bytes, stream);
    return kInvalidDirection;
  });
}
const char* cudaGetErrorName(int) {
  return "cudaErrorOfTheStandIn";
}
const char* cudaGetErrorString(int) {
  return "the stand-in refused the call";
}

#pragma GCC visibility pop
}
