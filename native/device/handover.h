// SPDX-License-Identifier: Apache-2.0
// Steps that ranks take together on the host while their devices run an operation.
#pragma once

#include "native/core/comm.h"

namespace windlass {

// Runs `phases` phases of the operation in progress on the rank's device. All ranks have
// entered it. `kernel`: the device's number for the kernel.
Code offload(Comm& comm, const Call& call, uint32_t kernel, uint32_t phases, const Launch& launch,
             Deadline& deadline);

// Waits until the operation that the rank put on a stream is complete, at most limitNs.
// Thread-safe.
Code awaitEnqueued(Comm& comm, uint64_t ticket, int64_t limitNs, bool* isOver, wl_error_t* error);

}  // namespace windlass
