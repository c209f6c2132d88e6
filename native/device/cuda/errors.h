// SPDX-License-Identifier: Apache-2.0
// Errors of NVIDIA's driver: the resulting code, and what to do.
#pragma once

#include "native/device/cuda/cuda.h"

namespace windlass::cuda {

struct Meaning {
  CuResult first;  // results from `first` to `last` mean the same; both -1: not in the table
  CuResult last;
  Code code;
  const char* cure;  // a sentence without its full stop
};

// Returns the meaning of any error; WL_DEVICE if the table does not list it.
Meaning meaningOf(CuResult result);

}  // namespace windlass::cuda
