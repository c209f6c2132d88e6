// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/gpu.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "windlass/offload.h"

namespace windlass::cuda {
namespace {

constexpr const char* kKernel = "windlass_run";
constexpr int32_t kLeastMajor = 8;
constexpr int32_t kAttributes[] = {kMajor, kMinor, kMultiprocessors, kCooperativeLaunch,
                                   kVirtualMemory};

Gpu gpus[kMostDeviceRanks];

}  // namespace

Code Gpu::followLast(CuStream stream, CuEvent own, wl_error_t* error) {
  const auto lock = WatchedCalls::lock(lastMutex_);
  if (last_ == nullptr || last_ == own) return WL_OK;
  return check(cuda_->cuStreamWaitEvent(stream, last_, 0), error);
}

void Gpu::setLast(CuEvent event) {
  const auto lock = WatchedCalls::lock(lastMutex_);
  last_ = event;
}

void Gpu::forget(CuEvent event) {
  const auto lock = WatchedCalls::lock(lastMutex_);
  if (last_ == event) last_ = nullptr;
}

Code Gpu::take(const Cuda& cuda, uint32_t number, const void* image, Gpu** gpu, wl_error_t* error) {
  if (number >= kMostDeviceRanks)
    return fail(error, WL_UNSUPPORTED, "device %u: Windlass counts %u", number, kMostDeviceRanks);
  Gpu& own = gpus[number];
  const auto lock = WatchedCalls::lock(own.mutex_);
  if (own.holders_ == 0) {
    own.cuda_ = &cuda;
    own.number_ = number;
    std::snprintf(own.name_, sizeof own.name_, "device %u", number);
  }
  // Allows this thread's calls while another thread captures. They are on no capturing stream.
  int32_t mode = kCaptureRelaxed;
  const Code relaxed = own.check(cuda.cuThreadExchangeStreamCaptureMode(&mode), error);
  if (relaxed != WL_OK) return relaxed;
  if (own.holders_ == 0) {
    if (Code code = own.begin(image, error); code != WL_OK) return code;
  } else if (Code code = own.check(cuda.cuCtxPushCurrent(own.context_), error); code != WL_OK) {
    return code;
  }
  ++own.holders_;
  *gpu = &own;
  return WL_OK;
}

Code Gpu::begin(const void* image, wl_error_t* error) {
  Code code = check(cuda_->cuDeviceGet(&device_, static_cast<int32_t>(number_)), error);
  int32_t values[std::size(kAttributes)] = {};
  for (size_t i = 0; code == WL_OK && i < std::size(kAttributes); ++i)
    code = check(cuda_->cuDeviceGetAttribute(&values[i], kAttributes[i], device_), error);
  if (code != WL_OK) return code;
  const auto [major, minor, multiprocessors, cooperates, maps] = values;
  if (major < kLeastMajor || cooperates == 0 || maps == 0) {
    return fail(error, WL_UNSUPPORTED,
                "device %u is of compute capability %d.x, %s cooperative kernels and %s virtual "
                "memory: Windlass takes 8.0 and later, with both",
                number_, major, cooperates == 0 ? "without" : "with",
                maps == 0 ? "without" : "with");
  }
  kind_ = {static_cast<uint32_t>(major), static_cast<uint32_t>(std::max(minor, 0)),
           static_cast<uint32_t>(std::max(multiprocessors, 0))};
  code = check(cuda_->cuDevicePrimaryCtxRetain(&context_, device_), error);
  if (code != WL_OK) return code;
  code = check(cuda_->cuCtxPushCurrent(context_), error);
  if (code == WL_OK) {
    code = loadNow(image, &own_, error);
    CuContext popped = nullptr;
    if (code != WL_OK) cuda_->cuCtxPopCurrent(&popped);
  }
  if (code != WL_OK) cuda_->cuDevicePrimaryCtxRelease(device_);
  return code;
}

Code Gpu::load(const void* image, wl_error_t* error) {
  const auto lock = WatchedCalls::lock(mutex_);
  for (const GpuKernels& each : libraries_)
    if (each.image == image) return WL_OK;
  libraries_.emplace_back();
  const Code code = loadNow(image, &libraries_.back(), error);
  if (code != WL_OK) libraries_.pop_back();
  return code;
}

const GpuKernels& Gpu::loaded(const void* image) const {
  if (image == nullptr) return own_;
  const auto lock = WatchedCalls::lock(mutex_);
  auto each = libraries_.begin();
  while (each->image != image) ++each;
  return *each;
}

Code Gpu::loadNow(const void* image, GpuKernels* kernels, wl_error_t* error) {
  CuModule module = nullptr;
  Code code = check(cuda_->cuModuleLoadData(&module, image), error);
  if (code != WL_OK) return code;
  CuFunction function = nullptr;
  int32_t threads = 0;
  int32_t blocks = 0;
  code = check(cuda_->cuModuleGetFunction(&function, module, kKernel), error);
  // This call loads the function.
  if (code == WL_OK)
    code = check(cuda_->cuFuncGetAttribute(&threads, kMostThreads, function), error);
  if (code == WL_OK)
    code = check(
        cuda_->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, kCudaThreads, 0),
        error);
  if (code != WL_OK) {
    cuda_->cuModuleUnload(module);
    return code;
  }
  *kernels = {image, module, function,
              static_cast<uint32_t>(std::max(blocks, 0)) * kind_.multiprocessors};
  return WL_OK;
}

Code Gpu::leave(wl_error_t* error) {
  const auto lock = WatchedCalls::lock(mutex_);
  GivesBack undo(*this, error);
  const bool isLast = --holders_ == 0;
  if (isLast) {
    for (const GpuKernels& each : libraries_) undo(cuda_->cuModuleUnload(each.module));
    libraries_.clear();
    undo(cuda_->cuModuleUnload(own_.module));
  }
  CuContext popped = nullptr;
  undo(cuda_->cuCtxPopCurrent(&popped));
  if (isLast) undo(cuda_->cuDevicePrimaryCtxRelease(device_));
  return undo.code;
}

}  // namespace windlass::cuda
