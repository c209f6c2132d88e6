// SPDX-License-Identifier: Apache-2.0
// Hands a kernel to the rank's device. It states the operation, waits for every rank's ENTER, then
// has the device run the kernel's items on the rank's data. The host waits and compares as for any
// operation. Devices signal one another directly (windlass/in_line.h).
#pragma once

#include "native/core/executor/executor.h"
#include "native/core/names.h"
#include "native/device/handover.h"
#include "native/device/offload_seats.h"

namespace windlass {

// Runs K as the rank's next operation on its device, whose number for it is `kernel`.
template <class K>
Code runOffloaded(Comm& comm, const Call& stated, uint32_t kernel) {
  static_assert(!K::kEager, "a device fetches what a rank brings from its memory");
  Call call = stated;
  if (call.on != nullptr) call.descriptor = call.descriptor.onStream();
  Group& group = comm.group();
  if (group.config().spansProcesses && !devicesSpanProcesses()) {
    return fail(call.error, WL_UNSUPPORTED,
                "ranks in several processes don't run %s on devices yet: have them be threads of "
                "one",
                operationName(call.descriptor.operation()));
  }
  return operate<K>(comm, call, [&](Launch& launch, Deadline& deadline) {
    Waits& waits = comm.waits();
    waits.showPhases(0);
    const OffloadTurn turn(group.offloadSeats(), comm.rank(),
                           comm.operation().wholeSequence());
    Code code = enter<K>(comm, call, deadline, [] { return WL_OK; });
    if (code != WL_OK) return code;
    waits.waiter().announce(-1);
    code = waits.awaitNeed(kEveryRank, 0, deadline);
    bool runs = false;
    if (code == WL_OK) code = ask<K>(group, launch, &runs);
    if (!runs) launch.phases = 0;
    const uint32_t phases = K::phases(launch);
    const bool isTheDevices = phases > 0 || call.on != nullptr;
    if (code == WL_OK && isTheDevices) code = offload(comm, call, kernel, phases, launch, deadline);
    if (code != WL_OK) return code;
    comm.operation().finishPhase(comm.rank(), K::phases(launch));
    waits.waiter().announce(-1);
    return WL_OK;
  });
}

}  // namespace windlass
