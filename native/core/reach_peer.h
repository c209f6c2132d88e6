// SPDX-License-Identifier: Apache-2.0
// Entry of a rank into a one-sided operation, whatever moves the bytes.
#pragma once

#include "native/core/comm.h"

namespace windlass {

inline Descriptor ofMove(wl_operation operation, uint32_t peer, const StridedView& view) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < view.ndim; ++d) count *= static_cast<uint64_t>(view.shape[d]);
  return Descriptor::of(operation, count, static_cast<int32_t>(view.dtype), 0, 0,
                        static_cast<int32_t>(peer));
}

template <class Move>
Code Comm::reachPeer(const Descriptor& descriptor, wl_error_t* error, Move&& move) {
  if (Code code = begin(descriptor, error); code != WL_OK) return code;
  record(descriptor);
  if (left(currentPeer())) return finish(failures_.publishLeft(current_), false, error);
  const Code code = orNoMemory([&] { return outcomeOf(move(), error); });
  return finish(code, false, error);
}

}  // namespace windlass
