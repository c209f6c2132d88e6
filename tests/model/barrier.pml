/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier where each rank has a core: runDirect (native/core/executor/cpu_executor.h) with kernels/barrier.h, which
 * has no phase and leaves after every rank's ENTER.
 *
 * Checked: no deadlock; a rank that returned sees what every rank wrote before it entered; a peer's ENTER is
 * the one of this operation for as long as it is read. The callers use the barrier as the guard of
 * a double buffer, which also shows that no rank runs two operations ahead. ENTER comes round once. */

#define OPERATIONS 5
#define DEPTH 4
#define USER(rank, s) (CONTROL_CELLS + 2 * (rank) + ((s) & 1))
#define CELLS (CONTROL_CELLS + 2 * RANKS)
#include "control_block.pml"

active [RANKS] proctype rank() {
  byte s = 1;
  byte peer;
  do
  :: s <= OPERATIONS ->
    store(USER(ME, s), s);
    publishEntry(s);
#ifndef WITHOUT_ENTER
    peer = AFTER(ME);
    do
    :: peer != ME ->
      awaitEntry(peer, s);
      peer = AFTER(peer)
    :: else -> break
    od;
#endif
    peer = AFTER(ME);
    do
    :: peer != ME ->
      assert(SEEN(USER(peer, s)) == s);
      peer = AFTER(peer)
    :: else -> break
    od;
    s++
  :: else -> break
  od
}
