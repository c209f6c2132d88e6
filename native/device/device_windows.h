// SPDX-License-Identifier: Apache-2.0
// Windows in the memory of devices, where callers have tensors there.
#pragma once

#include <memory>

#include "native/core/comm.h"

namespace windlass {

// Collective: memory on every rank's device, zeroed. All ranks get the same window, or the same
// error. `window` is nullptr on a rank that found no memory for its handle: an error of all.
Code createDeviceWindow(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error);

}  // namespace windlass
