// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/rank_device.h"

#include <cstring>

#include "native/base/readable.h"
#include "native/base/text.h"

namespace windlass::cuda {
namespace {

// Smallest unit in which a program maps device memory itself.
constexpr uint64_t kPage = uint64_t{2} << 20;

bool isLastMapped(const RankDevice::Named& memory) {
  return isReadable(static_cast<const unsigned char*>(memory.data) + memory.bytes - 1);
}

// True if the processor can read the first byte and the last one.
bool isMapped(const RankDevice::Named& memory) {
  return memory.bytes == 0 || (isReadable(memory.data) && isLastMapped(memory));
}

Code refuseMemory(const RankDevice::Named& memory, const char* why, wl_error_t* error) {
  return fail(error, WL_INVALID_ARGUMENT, "%s, %llu bytes at %p, %s", memory.name,
              text(memory.bytes), memory.data, why);
}

}  // namespace

Code CudaRankDevice::open(uint32_t number, wl_error_t* error) {
  const Cuda* cuda = nullptr;
  if (Code code = Cuda::find(&cuda, error); code != WL_OK) return code;
  if (Code code = Gpu::take(*cuda, number, image_, &gpu_, error); code != WL_OK) return code;
  Code code = copies_.open(*gpu_, error);
  if (code == WL_OK)
    code = gpu_->makePinned(&words_, kWordBytes + kNoteBytes, kHostDeviceMap, error);
  if (code == WL_OK) {
    std::memset(words_, 0, kWordBytes);
    code = gpu_->check(cuda->cuMemHostGetDevicePointer(&wordsAddress_, words_, 0), error);
  }
  if (code == WL_OK)
    streams_ = std::make_unique<Streams>(*this, *gpu_, copies_, words_ + kCoreLineBytes,
                                         wordsAddress_ + kCoreLineBytes);
  if (code != WL_OK) close(nullptr);
  return code;
}

Code CudaRankDevice::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  GivesBack undo(*gpu_, error);
  if (streams_ != nullptr) undo.by([&](wl_error_t* own) { return streams_->close(own); });
  streams_ = nullptr;
  undo.pinned(words_);
  undo.by([&](wl_error_t* own) { return moves_.close(own); });
  undo.by([&](wl_error_t* own) { return copies_.close(own); });
  undo.by([&](wl_error_t* own) { return gpu_->leave(own); });
  gpu_ = nullptr;
  words_ = nullptr;
  isStuck_ = false;
  return undo.code;
}

Code CudaRankDevice::makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) {
  // Operations in the new window are numbered from the start again.
  setStop(0);
  return window_.make(*this, exchange, bytes, error);
}

Code CudaRankDevice::typeOf(CuAddress address, int32_t* type, wl_error_t* error) {
  const Called asked = gpu_->cuda().cuPointerGetAttribute(type, kMemoryType, address);
  if (asked != kCuInvalidValue) return gpu_->check(asked, error);
  *type = kUnknownMemory;
  return WL_OK;
}

Code CudaRankDevice::find(const Named& memory, Lies* lies, wl_error_t* error) {
  const Cuda& cuda = gpu_->cuda();
  const auto address = reinterpret_cast<CuAddress>(memory.data);
  *lies = Lies::kHost;
  int32_t type = 0;
  Code code = typeOf(address, &type, error);
  if (code != WL_OK) return code;
  if (type == kUnknownMemory) {
    if (isMapped(memory)) return WL_OK;
    return refuseMemory(memory,
                        "are neither the driver's nor mapped in this process: were they freed, or "
                        "are they another process's?",
                        error);
  }
  if (type != kDeviceMemory) return checkLast(memory, false, error);
  int32_t device = 0;
  code = gpu_->check(cuda.cuPointerGetAttribute(&device, kMemoryDevice, address), error);
  if (code != WL_OK) return code;
  // Memory that a program maps itself has no context. Kernels don't reach memory of another
  // context, but copies do.
  CuContext context = nullptr;
  const Called asked = cuda.cuPointerGetAttribute(&context, kMemoryContext, address);
  if (asked != kCuInvalidValue) code = gpu_->check(asked, error);
  const bool isOurs = context == nullptr || context == gpu_->context();
  const bool isHere = device == static_cast<int32_t>(gpu_->number()) && isOurs;
  *lies = isHere ? Lies::kHere : Lies::kOtherDevice;
  if (code != WL_OK) return code;
  return context == nullptr ? checkLast(memory, true, error) : checkAllocation(memory, error);
}

Code CudaRankDevice::checkAllocation(const Named& memory, wl_error_t* error) {
  if (memory.bytes == 0) return WL_OK;
  const auto address = reinterpret_cast<CuAddress>(memory.data);
  CuAddress base = 0;
  size_t bytes = 0;
  const Called asked = gpu_->cuda().cuMemGetAddressRange(&base, &bytes, address);
  // Not found: the memory has a context but is no allocation.
  if (asked == kCuNotFound) return checkLast(memory, true, error);
  const Code code = gpu_->check(asked, error);
  const uint64_t left = base + bytes - address;
  if (code != WL_OK || memory.bytes <= left) return code;
  return fail(error, WL_INVALID_ARGUMENT,
              "%s, %llu bytes at %p, is longer than its allocation, which has %llu from there on: "
              "state the bytes that it has",
              memory.name, text(memory.bytes), memory.data, text(left));
}

// Memory that a program maps itself may have many pieces, so this only checks its last byte. The
// system may not know pinned memory that the driver has mapped.
Code CudaRankDevice::checkLast(const Named& memory, bool isOnDevice, wl_error_t* error) {
  if (memory.bytes == 0) return WL_OK;
  int32_t type = 0;
  const auto last = reinterpret_cast<CuAddress>(memory.data) + memory.bytes - 1;
  if (Code code = typeOf(last, &type, error); code != WL_OK) return code;
  const bool isKnown = type != kUnknownMemory || isOnDevice;
  if (isKnown ? (type == kDeviceMemory) == isOnDevice : isLastMapped(memory)) return WL_OK;
  return refuseMemory(memory, "are more than what is there, which ends before", error);
}

// Checks the access to each page. The driver reports nothing for memory from cuMemAlloc, which only
// its own device reaches.
Code CudaRankDevice::isReached(const void* memory, uint64_t bytes,
                               const std::vector<uint32_t>& devices, bool* is, wl_error_t* error) {
  const Cuda& cuda = gpu_->cuda();
  const auto first = reinterpret_cast<CuAddress>(memory);
  *is = false;
  for (const uint32_t number : devices) {
    CuLocation location = {kLocationDevice, 0};
    Code code = gpu_->check(cuda.cuDeviceGet(&location.id, static_cast<int32_t>(number)), error);
    for (CuAddress at = first; code == WL_OK && at < first + bytes; at = (at / kPage + 1) * kPage) {
      unsigned long long access = 0;
      const Called result = cuda.cuMemGetAccess(&access, &location, at);
      if (result == kCuInvalidValue) return WL_OK;
      code = gpu_->check(result, error);
      if (code == WL_OK && access != kAccessReadWrite) return WL_OK;
    }
    if (code != WL_OK) return code;
  }
  *is = true;
  return WL_OK;
}

Code CudaRankDevice::writeStop(uint64_t, uint32_t value, wl_error_t*) {
  setStop(value);
  window_.grid().withdraw(window_.slot());
  return WL_OK;
}

Code CudaRankDevice::start(const char* kernel, const void* image, const OffloadedOperation& given,
                           wl_error_t* error) {
  if (isStuck_) {
    return fail(error, WL_DEVICE,
                "device %u still runs a kernel that did not end in time: it takes no %s; close it",
                gpu_->number(), kernel);
  }
  return window_.grid().join(window_.slot(), gpu_->loaded(image).function, given.line.cores, given,
                             error);
}

Code CudaRankDevice::await(const char* kernel, int64_t limitNs, wl_error_t* error) {
  const Code code = window_.grid().await(window_.slot(), kernel, limitNs, error);
  isStuck_ = isStuck_ || (code != WL_OK && code != WL_DEADLINE_EXCEEDED);
  return code;
}

}  // namespace windlass::cuda
