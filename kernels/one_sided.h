// SPDX-License-Identifier: Apache-2.0
// One-sided operations: what one rank does to a peer's part of a window by itself.
//
// args     remote  a view of the peer's part
//          local   a view of this rank's memory, of the same shape and dtype; they share no byte
//          signal  the line of the peer's signal that this rank writes and nobody else
// phases   none: the caller runs each on its own thread
// signals  notify sets the peer's signal; the runtime waits, since it can end a wait
// order    notify releases what this rank moved before; a look that finds its value acquires it
#pragma once

#include "kernels/fold.h"
#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

WL_CORE inline void oneSidedPut(const StridedView& remote, const StridedView& local) {
  FoldTile tile;
  TASSIGN(tile, 0);
  TMOVE_CVT(remote, local, tile);
}

// remote += local. Adds of any ranks to the same elements lose nothing; their order is open.
WL_CORE inline void oneSidedAccumulate(const StridedView& remote, const StridedView& local) {
  FoldTile tile;
  TASSIGN(tile, 0);
  TMOVE_ADD(remote, local, tile);
}

WL_CORE inline void oneSidedGet(const StridedView& local, const StridedView& remote) {
  FoldTile tile;
  TASSIGN(tile, 0);
  TMOVE_CVT(local, remote, tile);
}

WL_CORE inline void oneSidedNotify(int32_t* word, uint32_t value) {
  comm::Signal signal(word);
  pipe_barrier(PIPE_ALL);
  dsb(DSB_DDR);
  comm::TNOTIFY(signal, static_cast<int32_t>(value), comm::NotifyOp::Set);
}

}  // namespace windlass
