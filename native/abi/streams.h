// SPDX-License-Identifier: Apache-2.0
// Shared code of the calls that enqueue a collective on a stream.
#pragma once

#include "native/abi/handles.h"
#include "native/device/enqueuing.h"

namespace windlass {

// Checks the call, then calls enqueueOn(on), which enqueues the collective.
template <class EnqueueOn>
Code enqueue(const wl_comm_t* comm, uint64_t stream, int64_t deadlineNs, uint64_t* ticket,
             wl_error_t* error, const EnqueueOn& enqueueOn) {
  if (Code code = checkCall(comm, deadlineNs, error); code != WL_OK) return code;
  if (Code code = checkNotNull(ticket, "ticket", error); code != WL_OK) return code;
  *ticket = 0;
  if (comm->comm.group().config().offloadCores == 0) {
    return fail(error, WL_UNSUPPORTED, "kernels of target %s run on no stream: those of cuda do",
                wl_target());
  }
  OnStream on = {stream, 0};
  const Code code = enqueueOn(&on);
  *ticket = on.ticket;
  return code;
}

}  // namespace windlass
