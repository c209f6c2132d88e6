// SPDX-License-Identifier: Apache-2.0
#include "native/device/kept_devices.h"

#include <atomic>

#include "native/base/text.h"
#include "windlass/kernel.h"

namespace windlass {
namespace {

std::atomic<const char*> kernels[kMostDeviceRanks];
std::atomic<const char*> calls[kMostDeviceRanks];
std::atomic<uint64_t> windowCount;
std::atomic<uint64_t> windowBytes;

}  // namespace

void KeptDevices::add(uint32_t device, const char* kernel) {
  kernels[device] = kernel;
}

void KeptDevices::addCall(uint32_t device, const char* call) {
  const char* none = nullptr;
  // Keeps the first call, which blocks the others.
  calls[device].compare_exchange_strong(none, call);
}

bool KeptDevices::has(uint32_t device) {
  return kernels[device] != nullptr || calls[device] != nullptr;
}

void KeptDevices::addWindow(uint64_t bytes) {
  windowCount.fetch_add(1, std::memory_order_relaxed);
  windowBytes.fetch_add(bytes, std::memory_order_relaxed);
}

uint64_t KeptDevices::windows() {
  return windowCount.load(std::memory_order_relaxed);
}

Code KeptDevices::check(uint32_t device, wl_error_t* error) {
  const uint64_t bytes = windowBytes.load(std::memory_order_relaxed);
  if (const char* kernel = kernels[device]; kernel != nullptr) {
    return fail(error, WL_DEVICE,
                "device %u may still run %s, which was not seen to end; what it may touch is kept, "
                "so far %llu windows of %llu bytes in all, until this process ends",
                device, kernel, text(windows()), text(bytes));
  }
  const char* const call = calls[device];
  if (call == nullptr) return WL_OK;
  return fail(error, WL_DEVICE,
              "device %u's driver does not return from %s; what such calls may touch is kept, so "
              "far %llu windows of %llu bytes in all, until this process ends",
              device, call, text(windows()), text(bytes));
}

}  // namespace windlass
