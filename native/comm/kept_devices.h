// SPDX-License-Identifier: Apache-2.0
// Devices of this process on which a kernel runs that did not end when it was told to, or a copy
// that did not end in time, and memory that is never given back since such, or a call that does not
// return, may use it. Any thread may ask.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

struct KeptDevices {
  // `kernel` lasts, or "a copy".
  static void add(uint32_t device, const char* kernel);
  static void addWindow(uint64_t bytes);
  static uint64_t windows();
  // WL_DEVICE where one runs there: the device takes nothing else of this process.
  static Code check(uint32_t device, wl_error_t* error);
};

}  // namespace windlass
