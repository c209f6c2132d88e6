// SPDX-License-Identifier: Apache-2.0
// Windows in device memory, for tensors that callers have there.
#pragma once

#include <memory>

#include "native/core/comm.h"
#include "native/memory/window.h"

namespace windlass {

// Creates zeroed memory on every rank's device. Collective: all ranks get the same window or the
// same error. A rank passes `window` = nullptr if it has no memory for its handle, which is an
// error on all ranks.
Code createDeviceWindow(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error);

}  // namespace windlass
