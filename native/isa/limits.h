// SPDX-License-Identifier: Apache-2.0
// What each target has, as plain data. A limit that a kernel would break is refused on the host,
// by these, before anything moves.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

constexpr Limits kLimits = {
    "sim",
    uint64_t{16} << 20,
    uint64_t{192} << 10,
};

}  // namespace windlass
