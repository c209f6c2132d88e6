// SPDX-License-Identifier: Apache-2.0
// Operations that one rank calls without the others. They take no sequence and concern only one
// peer. Arguments have been checked: both views have one dtype and shape and are inside their
// memory, and `signal` is a line of its window. A signal holds the low 32 bits of a value.
#pragma once

#include "native/base/extent.h"
#include "native/core/comm.h"

namespace windlass {

// WL_OP_PUT: remote = local. WL_OP_GET: local = remote. WL_OP_ACCUMULATE: remote += local,
// atomically for each element; canAccumulate(local.dtype).
Code moveOneSided(Comm& comm, wl_operation operation, uint32_t peer, const StridedView& remote,
                  const StridedView& local, wl_error_t* error);
// `signal` is in the peer's memory, and only this rank writes it.
Code notify(Comm& comm, uint32_t peer, uint32_t* signal, uint64_t value, wl_error_t* error);
// `signal` is in this rank's memory, and only the peer writes it.
Code wait(Comm& comm, uint32_t peer, const uint32_t* signal, uint64_t value, int64_t deadlineNs,
          wl_error_t* error);
// Checks the signal once.
Code test(Comm& comm, uint32_t peer, const uint32_t* signal, uint64_t value, bool* isReached,
          wl_error_t* error);

// The following functions serve such operations, by whatever means the bytes move.

inline Descriptor ofMove(wl_operation operation, uint32_t peer, const StridedView& view) {
  return Descriptor::of(operation, elementsOf(view), static_cast<int32_t>(view.dtype), 0, 0,
                        static_cast<int32_t>(peer));
}

// Converts the result of a move. `broken` says what the target does not allow, or is nullptr.
// `ofDevice` is the error of the rank's device. If the device refuses the operation or does not
// know the memory, the communicator stays as it was.
Code outcomeOf(Comm& comm, const char* broken, wl_error_t* error);
Code outcomeOf(Comm& comm, const wl_error_t& ofDevice, wl_error_t* error);
inline Code outcomeOf(Comm&, Code code, wl_error_t*) { return code; }

// Begins a one-sided operation, which takes no sequence. descriptor.peer() is the one peer that
// it concerns.
Code beginOneSided(Comm& comm, const Descriptor& descriptor, wl_error_t* error);

// Runs `move` as a one-sided operation, unless the peer has left.
template <class Move>
Code reachPeer(Comm& comm, const Descriptor& descriptor, wl_error_t* error, Move&& move) {
  if (Code code = beginOneSided(comm, descriptor, error); code != WL_OK) return code;
  const Code code = comm.waits().hasLeft(comm.operation().peer())
                        ? comm.failures().publishLeft(descriptor)
                        : comm.orNoMemory([&] { return outcomeOf(comm, move(), error); });
  return comm.finish(code, false, error);
}

}  // namespace windlass
