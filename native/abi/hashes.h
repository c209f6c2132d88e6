// SPDX-License-Identifier: Apache-2.0
// What callers have hashed, once it is checked, on the host and by a rank's device.
#pragma once

#include <vector>

#include "native/abi/handles.h"
#include "native/hash/hash.h"

namespace windlass {

// What wl_tensor_hash takes. *what refers to *views. Throws std::bad_alloc.
Code checkHashed(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                 int32_t dtype, std::vector<StridedView>* views, Hashed* what, wl_error_t* error);

// hashOf() where views may lie on devices: `device` brings those to the host, piece by piece.
// Throws std::bad_alloc.
Code hashByDevice(RankDevice& device, const Hashed& what, uint64_t seed, uint64_t* hash,
                  wl_error_t* error);

}  // namespace windlass
