// SPDX-License-Identifier: Apache-2.0
// One-sided operations that a rank's device runs. Arguments have been checked, as those of
// native/core/one_sided.h.
#pragma once

#include <functional>

#include "native/core/comm.h"
#include "native/device/device_moves.h"

namespace windlass {

// put(), accumulate() and get() of native/core/one_sided.h by this rank's device, where `local` or
// the window lies on devices. `remote.lies`: kHere in a window there, whose parts are `parts`;
// kHost in one of the host. What the device doesn't do is WL_UNSUPPORTED, and leaves the
// communicator as it was.
Code putByDevice(Comm& comm, uint32_t peer, const MoveSide& remote, const StridedView& local,
                 wl_error_t* error);
Code accumulateByDevice(Comm& comm, uint32_t peer, const DeviceParts* parts, const MoveSide& remote,
                        const StridedView& local, wl_error_t* error);
Code getByDevice(Comm& comm, uint32_t peer, const StridedView& local, const MoveSide& remote,
                 wl_error_t* error);
// What this rank's device does with a view of the rank's own that lies on a device, and which
// concerns no peer: body(device, error). WL_OP_PUT writes it, WL_OP_GET reads it.
Code haveDevice(Comm& comm, wl_operation operation, const StridedView& view,
                const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error);

}  // namespace windlass
