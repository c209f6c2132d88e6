/* SPDX-License-Identifier: Apache-2.0 */
/* The sleeping wait: a barrier (barrier.pml) whose ranks sleep on their doorbells (doorbell.pml) whenever one
 * look finds a peer's ENTER missing.
 *
 * Checked: no wake is lost, so that every rank returns from every operation. */

#define OPERATIONS 2
#define DEPTH 3
#define BELL_CELLS CONTROL_CELLS
#define CELLS (CONTROL_CELLS + 1 + RANKS)
#include "control_block.pml"
#include "doorbell.pml"

active [RANKS] proctype rank() {
  byte s = 1;
  byte peer, bell;
  do
  :: s <= OPERATIONS ->
    store(ENTER(ME, s), LOW(s));
    peer = AFTER(ME);
    do
    :: peer != ME ->
      if
      :: ENTERED(peer, s)
      :: else ->
        storeLoad();
        wakeSleepers();
        do
        :: ENTERED(peer, s) -> break
        :: else ->
          lieDown();
          if
#ifndef WITHOUT_SECOND_LOOK
          :: ENTERED(peer, s)
#endif
          :: else -> sleep()
          fi;
          getUp()
        od
      fi;
      peer = AFTER(peer)
    :: else -> break
    od;
    storeLoad();
    wakeSleepers();
    s++
  :: else -> break
  od
}
