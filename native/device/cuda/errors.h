// SPDX-License-Identifier: Apache-2.0
// Errors of NVIDIA's driver: the resulting code, and what to do.
#pragma once

#include "native/device/cuda/cuda.h"

namespace windlass::cuda {

struct Meaning {
  CuResult result;
  Code code;
  const char* cure;  // a sentence without its full stop
};

// Returns the entry of any error; WL_DEVICE if the table does not list it.
const Meaning& meaningOf(CuResult result);

}  // namespace windlass::cuda
