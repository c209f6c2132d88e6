// SPDX-License-Identifier: Apache-2.0
// Hashes of tensors that callers pass in: the checks, and hashing through a rank's device.
#pragma once

#include <vector>

#include "native/abi/handles.h"
#include "native/hash/hash.h"

namespace windlass {

// Checks the arguments of wl_tensor_hash. *what points into *views. Throws std::bad_alloc.
Code checkHashed(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                 int32_t dtype, std::vector<StridedView>* views, Hashed* what, wl_error_t* error);

// Like hashOf(), for views that may lie on devices. `device` copies them to the host in pieces.
// Throws std::bad_alloc.
Code hashByDevice(RankDevice& device, const Hashed& what, uint64_t seed, uint64_t* hash,
                  wl_error_t* error);

}  // namespace windlass
