// SPDX-License-Identifier: Apache-2.0
// Checks if GPUs reach the parts of a window on other GPUs: by the driver's answer, and by test
// copies.
#pragma once

#include <vector>

#include "native/device/cuda/copies.h"

namespace windlass::cuda {

// Returns each GPU of the process once, `first` first. `devices` holds the GPU of each rank, and
// kNobody for ranks of other processes.
std::vector<uint32_t> eachOnce(uint32_t first, const std::vector<uint32_t>& devices);

// Asks the driver if each of those GPUs reaches the rank's own.
Code checkReach(const Gpu& gpu, uint32_t rank, const std::vector<uint32_t>& devices,
                wl_error_t* error);

// A rank's part of a window. Errors name the rank and the device.
struct PlacedPart {
  uint32_t rank;
  uint32_t device;
  CuAddress address;
};
// Copies data from `own` to a peer's part and back, and compares it. Uses bytes of both parts that
// no other rank uses, and zeroes them.
Code tryPart(Copies& copies, const PlacedPart& own, const PlacedPart& peer, wl_error_t* error);

}  // namespace windlass::cuda
