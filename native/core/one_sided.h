// SPDX-License-Identifier: Apache-2.0
// Operations that one rank calls without the others. They take no sequence and concern only one
// peer. Arguments have been checked: both views have one dtype and shape and are inside their
// memory, and `signal` is a line of its window.
#pragma once

#include "native/core/comm.h"

namespace windlass {

// remote = local.
Code put(Comm& comm, uint32_t peer, const StridedView& remote, const StridedView& local,
         wl_error_t* error);
// remote += local, atomically for each element; canAccumulate(local.dtype).
Code accumulate(Comm& comm, uint32_t peer, const StridedView& remote, const StridedView& local,
                wl_error_t* error);
// local = remote.
Code get(Comm& comm, uint32_t peer, const StridedView& local, const StridedView& remote,
         wl_error_t* error);
// `signal` is in the peer's memory, and only this rank writes it.
Code notify(Comm& comm, uint32_t peer, uint32_t* signal, uint32_t value, wl_error_t* error);
// `signal` is in this rank's memory, and only the peer writes it.
Code wait(Comm& comm, uint32_t peer, const uint32_t* signal, uint32_t value, int64_t deadlineNs,
          wl_error_t* error);
// Checks the signal once.
Code test(Comm& comm, uint32_t peer, const uint32_t* signal, uint32_t value, bool* isReached,
          wl_error_t* error);

}  // namespace windlass
