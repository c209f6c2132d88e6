// SPDX-License-Identifier: Apache-2.0
// What each error of NVIDIA's driver comes to, and what to do about it.
#pragma once

#include "native/device/cuda/cuda.h"

namespace windlass::cuda {

struct Meaning {
  CuResult result;
  Code code;
  const char* cure;  // a sentence without its full stop
};

// Of any error; one that stands for itself in no line of the table is WL_DEVICE.
const Meaning& meaningOf(CuResult result);

}  // namespace windlass::cuda
