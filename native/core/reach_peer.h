// SPDX-License-Identifier: Apache-2.0
// Entry of a rank into a one-sided operation, whatever moves the bytes.
#pragma once

#include "native/base/extent.h"
#include "native/core/comm.h"

namespace windlass {

inline Descriptor ofMove(wl_operation operation, uint32_t peer, const StridedView& view) {
  return Descriptor::of(operation, elementsOf(view), static_cast<int32_t>(view.dtype), 0, 0,
                        static_cast<int32_t>(peer));
}

// Converts what a move returns: nullptr or what the target does not allow, or the error of the
// rank's device. If the device refuses the operation or does not know the memory, the communicator
// stays as it was.
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
