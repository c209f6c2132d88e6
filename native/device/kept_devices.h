// SPDX-License-Identifier: Apache-2.0
// Devices of this process on which a kernel may run that was not seen to end when it was told to,
// or a copy that was not seen to end in time, or whose driver does not return from a call, and
// memory that is never given back since such may use it. Any thread may ask.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

struct KeptDevices {
  // `kernel` lasts, or "a copy".
  static void add(uint32_t device, const char* kernel);
  // The driver does not return from `call`, which lasts.
  static void addCall(uint32_t device, const char* call);
  static void addWindow(uint64_t bytes);
  static uint64_t windows();
  // Whether there is such on that device.
  static bool has(uint32_t device);
  // WL_DEVICE where there is: the device takes nothing else of this process.
  static Code check(uint32_t device, wl_error_t* error);
};

}  // namespace windlass
