// SPDX-License-Identifier: Apache-2.0
// The network devices that UCX finds on this host.
#pragma once

#include "native/base/error.h"

namespace windlass {

// Checks that this host has a device of `names`, a list like UCX_NET_DEVICES. UCX itself continues
// without one. WL_UNSUPPORTED: it has none, and the error lists its devices. Throws std::bad_alloc.
Code requireDevice(const char* names, wl_error_t* error);

}  // namespace windlass
