// SPDX-License-Identifier: Apache-2.0
#include "native/comm/kept_devices.h"

#include <atomic>

#include "windlass/kernel.h"

namespace windlass {
namespace {

std::atomic<const char*> kernels[kMostDeviceRanks];
std::atomic<uint64_t> windowCount;
std::atomic<uint64_t> windowBytes;

}  // namespace

void KeptDevices::add(uint32_t device, const char* kernel) {
  if (device < kMostDeviceRanks) kernels[device].store(kernel, std::memory_order_release);
}

void KeptDevices::addWindow(uint64_t bytes) {
  windowCount.fetch_add(1, std::memory_order_relaxed);
  windowBytes.fetch_add(bytes, std::memory_order_relaxed);
}

uint64_t KeptDevices::windows() {
  return windowCount.load(std::memory_order_relaxed);
}

Code KeptDevices::check(uint32_t device, wl_error_t* error) {
  const char* kernel =
      device < kMostDeviceRanks ? kernels[device].load(std::memory_order_acquire) : nullptr;
  if (kernel == nullptr) return WL_OK;
  return fail(error, WL_DEVICE,
              "device %u still runs %s, which did not end when it was told to; what such kernels "
              "reach is kept, so far %llu windows of %llu bytes in all, until this process ends",
              device, kernel, static_cast<unsigned long long>(windows()),
              static_cast<unsigned long long>(windowBytes.load(std::memory_order_relaxed)));
}

}  // namespace windlass
