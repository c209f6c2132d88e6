// SPDX-License-Identifier: Apache-2.0
// The network devices that UCX finds on this host.
#pragma once

#include "native/base/error.h"

namespace windlass {

// Whether one of those that `names` lists as UCX_NET_DEVICES does is here; UCX by itself goes on
// without. WL_UNSUPPORTED says which are. Throws std::bad_alloc.
Code requireDevice(const char* names, wl_error_t* error);

}  // namespace windlass
