// SPDX-License-Identifier: Apache-2.0
// Moves that a kernel of a GPU makes for one rank. They do what the driver's copies can't do:
// strided views and adds. The kernel waits for no other rank.
#pragma once

#include "native/device/cuda/copies.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class Moves {
 public:
  // to = from, or to += from. Blocks until the move is over. If one does not end, it and all later
  // calls return WL_DEVICE. The first call allocates device memory.
  Code run(const Gpu& gpu, Copies& copies, const DeviceMove& move, wl_error_t* error);
  // Returns kDeviceStageBytes of device memory, a staging buffer for a single move.
  Code stage(const Gpu& gpu, void** memory, wl_error_t* error);
  // True if a kernel may still run: it did not end in time, or the driver does not report its end.
  bool isStuck() const { return isStuck_; }
  // Releases everything, even after failures, and returns the first failure.
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
