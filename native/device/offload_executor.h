// SPDX-License-Identifier: Apache-2.0
// Hands a kernel to the rank's device. It states the operation, waits for every rank's ENTER, then
// has the device run the kernel's items on the rank's data. The host waits and compares as for any
// operation. Devices signal one another directly (windlass/in_line.h).
#pragma once

#include "native/core/executor.h"
#include "native/device/offload_seats.h"

namespace windlass {

template <class K>
Code Comm::runOffloaded(const Call& stated, uint32_t kernel) {
  static_assert(!K::kEager, "a device fetches what a rank brings from its memory");
  Call call = stated;
  if (call.on != nullptr) call.descriptor = call.descriptor.onStream();
  if (group_->config().spansProcesses && !devicesSpanProcesses()) {
    return fail(call.error, WL_UNSUPPORTED,
                "ranks in several processes don't run %s on devices yet: have them be threads of "
                "one",
                operationName(call.descriptor.operation()));
  }
  return operate<K>(call, [&](Launch& launch, Deadline& deadline) {
    shownPhases_ = 0;
    const OffloadTurn turn(group_->offloadSeats(), rank_, sequence_);
    Code code = enter<K>(call, deadline, [] { return WL_OK; });
    if (code != WL_OK) return code;
    waiter_.announce(-1);
    code = awaitNeed(kEveryRank, 0, deadline);
    if constexpr (Asks<K>::value) {
      bool runs = false;
      if (code == WL_OK) code = ask<K>(launch, &runs);
      if (!runs) launch.phases = 0;
    }
    const uint32_t phases = K::phases(launch);
    const bool isTheDevices = phases > 0 || call.on != nullptr;
    meetsOnHosts_ = true;
    if (code == WL_OK && isTheDevices) code = offload(call, kernel, phases, launch, deadline);
    meetsOnHosts_ = false;
    if (code != WL_OK) return code;
    finishPhase(rank_, K::phases(launch));
    waiter_.announce(-1);
    return WL_OK;
  });
}

}  // namespace windlass
