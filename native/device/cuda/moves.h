// SPDX-License-Identifier: Apache-2.0
// Moves that a GPU makes for one rank by a kernel, which waits for nobody: what copies of the
// driver can't say, strided views and adds.
#pragma once

#include "native/device/cuda/copies.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class Moves {
 public:
  // to = from, or to += from. It is over once it returns; WL_DEVICE where it does not end, and from
  // then on. What it takes on the device is made by the first.
  Code run(const Gpu& gpu, Copies& copies, const DeviceMove& move, wl_error_t* error);
  // kDeviceStageBytes of the device, for nothing but what one move brings through them.
  Code stage(const Gpu& gpu, void** memory, wl_error_t* error);
  // Whether a kernel may run on, that did not end in time or of whose end the driver does not tell.
  bool isStuck() const { return isStuck_; }
  // Gives back what it took, whatever fails, and tells the first failure.
  Code close(wl_error_t* error);

 private:
  Code open(const Gpu& gpu, wl_error_t* error);

  const Gpu* gpu_ = nullptr;
  CuStream stream_ = nullptr;
  CuAddress given_ = 0;  // a Given
  CuAddress stage_ = 0;
  bool isStuck_ = false;
};

}  // namespace windlass::cuda
