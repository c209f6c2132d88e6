// SPDX-License-Identifier: Apache-2.0
// One-sided operations that a rank's device runs. The caller has checked the arguments, as for
// native/core/one_sided.h.
#pragma once

#include <functional>

#include "native/core/comm.h"
#include "native/device/device_moves.h"

namespace windlass {

// moveOneSided() of native/core/one_sided.h, run by this rank's device. At least one of `local` and
// the window lies on devices. For a window on devices, `remote.lies` is kHere and
// `parts` are its parts. For a host window, `remote.lies` is kHost and `parts` is nullptr. Returns
// WL_UNSUPPORTED, with the communicator unchanged, if the device can't do the operation.
Code moveOneSidedByDevice(Comm& comm, wl_operation operation, uint32_t peer,
                          const DeviceParts* parts, const MoveSide& remote,
                          const StridedView& local, wl_error_t* error);
// Runs body(device, error) on a view of this rank that lies on a device. No peer takes part.
// WL_OP_PUT: the body writes the view. WL_OP_GET: it reads it.
Code haveDevice(Comm& comm, wl_operation operation, const StridedView& view,
                const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error);

}  // namespace windlass
