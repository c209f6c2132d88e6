// SPDX-License-Identifier: Apache-2.0
// Devices of this process that may still run work that the host could not end: a kernel, a copy or
// a driver call. Memory that such work may access is never released. Devices are numbered below
// kMostDeviceRanks. Any thread may ask.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

struct KeptDevices {
  // Marks the device as busy with a kernel or "a copy". `kernel` must stay valid.
  static void add(uint32_t device, const char* kernel);
  // Marks the device's driver as stuck in `call`, which must stay valid.
  static void addCall(uint32_t device, const char* call);
  static void addWindow(uint64_t bytes);
  static uint64_t windows();
  // True if the device is marked.
  static bool has(uint32_t device);
  // Returns WL_DEVICE if the device is marked. It then accepts no more work from this process.
  static Code check(uint32_t device, wl_error_t* error);
};

}  // namespace windlass
