// SPDX-License-Identifier: Apache-2.0
// Errors of NVIDIA's driver: the resulting code, and what to do.
#pragma once

#include "native/device/cuda/cuda.h"

namespace windlass::cuda {

struct Meaning {
  CuResult result;  // -1: the table does not list it
  Code code;
  const char* cure;  // a sentence without its full stop
};

// Returns the meaning of any error; WL_DEVICE if the table does not list it.
Meaning meaningOf(CuResult result);

}  // namespace windlass::cuda
