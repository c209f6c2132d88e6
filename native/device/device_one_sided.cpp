// SPDX-License-Identifier: Apache-2.0
#include "native/device/device_one_sided.h"

#include "native/core/one_sided.h"
#include "native/device/device_wait.h"
#include "native/device/offload_seats.h"

namespace windlass {
namespace {

// Finds the location of a caller's tensor, then runs body(device, local, error) as a one-sided
// operation. Refuses a tensor that is on no device, unless `takesHost`.
template <class Body>
Code runOneSided(Comm& comm, wl_operation operation, uint32_t peer, const StridedView& view,
                 bool takesHost, wl_error_t* error, const Body& body) {
  const auto run = [&](RankDevice& device, wl_error_t* own) {
    MoveSide local = {view, RankDevice::Lies::kHost};
    const Code code = findView(device, "the tensor", view, &local.lies, own);
    if (code != WL_OK) return code;
    if (takesHost || local.lies != RankDevice::Lies::kHost) return body(device, local, own);
    return fail(own, WL_UNSUPPORTED,
                "the tensor at %p is in no device's memory that the driver knows", view.data);
  };
  return reachPeer(comm, ofMove(operation, peer, view), error, [&] {
    wl_error_t failed = blankError();
    DeviceWait waits(comm.group(), comm.rank());
    comm.group().offloadSeats().offload(comm.rank()).alone(run, waits, &failed);
    return failed;
  });
}

}  // namespace

Code moveOneSidedByDevice(Comm& comm, wl_operation operation, uint32_t peer,
                          const DeviceParts* parts, const MoveSide& remote,
                          const StridedView& local, wl_error_t* error) {
  const bool adds = operation == WL_OP_ACCUMULATE;
  const bool takesHost = remote.lies != RankDevice::Lies::kHost;
  return runOneSided(comm, operation, peer, local, takesHost, error,
                     [&](RankDevice& device, const MoveSide& own, wl_error_t* failed) {
                       if (operation == WL_OP_GET)
                         return moveByDevice(device, own, remote, false, failed);
                       Code code = WL_OK;
                       if (adds && parts != nullptr)
                         code = parts->checkAdds(device, comm.rank(), peer, failed);
                       return code == WL_OK ? moveByDevice(device, remote, own, adds, failed)
                                            : code;
                     });
}

Code haveDevice(Comm& comm, wl_operation operation, const StridedView& view,
                const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error) {
  return runOneSided(comm, operation, comm.rank(), view, false, error,
                     [&](RankDevice& device, const MoveSide&, wl_error_t* failed) {
                       return body(device, failed);
                     });
}

}  // namespace windlass
