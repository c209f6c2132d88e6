// SPDX-License-Identifier: Apache-2.0
// Whether GPUs reach the parts of a window that others have: by the driver's word, and by trial.
#pragma once

#include <vector>

#include "native/device/cuda/copies.h"

namespace windlass::cuda {

// Whether each of those GPUs reaches the rank's own, as the driver has it.
Code checkReach(const Gpu& gpu, uint32_t rank, const std::vector<uint32_t>& devices,
                wl_error_t* error);

// A rank's part of a window, in messages too.
struct PlacedPart {
  uint32_t rank;
  uint32_t device;
  CuAddress address;
};
// Whether what `own` copies to the part of a peer, and back, comes there. It uses bytes of both
// that no other rank tries, and zeroes them.
Code tryPart(Copies& copies, const PlacedPart& own, const PlacedPart& peer, wl_error_t* error);

}  // namespace windlass::cuda
