// SPDX-License-Identifier: Apache-2.0
// One-sided operations of one rank on a peer's part of a window.
//
// args     remote  a view of the peer's part
//          local   a view of this rank's memory, of the same shape and dtype; they share no byte
//          signal  the line of the peer's signal that only this rank writes
// phases   none: the caller runs each on its own thread
// signals  notify sets the peer's signal; the runtime waits, since it can end a wait
// order    notify releases this rank's earlier moves; a check that finds its value acquires them
#pragma once

#include "kernels/fold.h"
#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// A put to remote memory, or a get from it.
WL_CORE inline void oneSidedMove(const StridedView& to, const StridedView& from) {
  FoldTile tile;
  TASSIGN(tile, 0);
  TMOVE_CVT(to, from, tile);
}

// remote += local. No add is lost if several ranks add to the same elements; their order is not
// defined.
WL_CORE inline void oneSidedAccumulate(const StridedView& remote, const StridedView& local) {
  FoldTile tile;
  TASSIGN(tile, 0);
  TMOVE_ADD(remote, local, tile);
}

WL_CORE inline void oneSidedNotify(int32_t* word, uint32_t value) {
  comm::Signal signal(word);
  pipe_barrier(PIPE_ALL);
  dsb(DSB_DDR);
  comm::TNOTIFY(signal, static_cast<int32_t>(value), comm::NotifyOp::Set);
}

}  // namespace windlass
