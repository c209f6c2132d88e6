// SPDX-License-Identifier: Apache-2.0
#include "native/device/device_one_sided.h"

#include "native/core/reach_peer.h"
#include "native/device/offload_seats.h"
#include "native/device/rank_waits.h"

namespace windlass {
namespace {

// Runs body(device, error) with the rank's device. Returns its error in the form that reachPeer()
// takes.
template <class Body>
wl_error_t byDevice(Comm& comm, const Body& body) {
  wl_error_t error = blankError();
  RankWaits waits(comm.group(), comm.rank());
  comm.group().offloadSeats().offload(comm.rank()).alone(body, waits, &error);
  return error;
}

// Finds the location of a caller's tensor. Refuses one that is on no device, unless `takesHost`.
Code find(RankDevice& device, const StridedView& local, bool takesHost, MoveSide* side,
          wl_error_t* error) {
  *side = {local, RankDevice::Lies::kHost};
  const Code code = findView(device, "the tensor", local, &side->lies, error);
  if (code != WL_OK || takesHost || side->lies != RankDevice::Lies::kHost) return code;
  return fail(error, WL_UNSUPPORTED,
              "the tensor at %p is in no device's memory that the driver knows", local.data);
}

// Finds the location of `local`, then runs body(device, local, error), which moves between it and
// `remote`.
template <class Body>
Code moveLocal(Comm& comm, wl_operation operation, uint32_t peer, const MoveSide& remote,
               const StridedView& local, wl_error_t* error, const Body& body) {
  const auto run = [&](RankDevice& device, wl_error_t* own) {
    MoveSide side = {};
    const bool takesHost = remote.lies != RankDevice::Lies::kHost;
    const Code code = find(device, local, takesHost, &side, own);
    return code == WL_OK ? body(device, side, own) : code;
  };
  return reachPeer(comm, ofMove(operation, peer, local), error,
                   [&] { return byDevice(comm, run); });
}

}  // namespace

Code putByDevice(Comm& comm, uint32_t peer, const MoveSide& remote, const StridedView& local,
                 wl_error_t* error) {
  return moveLocal(comm, WL_OP_PUT, peer, remote, local, error,
                   [&](RankDevice& device, const MoveSide& from, wl_error_t* own) {
                     return moveByDevice(device, remote, from, false, own);
                   });
}

Code accumulateByDevice(Comm& comm, uint32_t peer, const DeviceParts* parts, const MoveSide& remote,
                        const StridedView& local, wl_error_t* error) {
  return moveLocal(comm, WL_OP_ACCUMULATE, peer, remote, local, error,
                   [&](RankDevice& device, const MoveSide& from, wl_error_t* own) {
                     const Code code = parts == nullptr
                                           ? WL_OK
                                           : parts->checkAdds(device, comm.rank(), peer, own);
                     return code == WL_OK ? moveByDevice(device, remote, from, true, own) : code;
                   });
}

Code getByDevice(Comm& comm, uint32_t peer, const StridedView& local, const MoveSide& remote,
                 wl_error_t* error) {
  return moveLocal(comm, WL_OP_GET, peer, remote, local, error,
                   [&](RankDevice& device, const MoveSide& to, wl_error_t* own) {
                     return moveByDevice(device, to, remote, false, own);
                   });
}

Code haveDevice(Comm& comm, wl_operation operation, const StridedView& view,
                const std::function<Code(RankDevice&, wl_error_t*)>& body, wl_error_t* error) {
  const auto run = [&](RankDevice& device, wl_error_t* own) {
    MoveSide side = {};
    const Code code = find(device, view, false, &side, own);
    return code == WL_OK ? body(device, own) : code;
  };
  return reachPeer(comm, ofMove(operation, comm.rank(), view), error,
                        [&] { return byDevice(comm, run); });
}

}  // namespace windlass
