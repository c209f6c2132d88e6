/* SPDX-License-Identifier: Apache-2.0 */
/* Push all-to-all into one window that is used again and again, where each rank has a core: runDirect
 * (native/core/executor/cpu_executor.h) with kernels/all_to_all.h. A rank writes its chunk into each peer's output after that
 * peer's ENTER, and leaves after every peer's DONE.
 *
 * Checked: no deadlock; outputs are complete and right on return; until a rank enters the next operation
 * nobody else touches its output, which it overwrites here and reads back; an ENTER's slot is not
 * overwritten while anybody reads it. Left out: inputs and the chunk a rank sends to itself, which it alone
 * touches, and items run by other ranks (claim.pml). */

#define OPERATIONS 3
#define DEPTH 6
#define OUTPUT(rank, from) (CONTROL_CELLS + (rank) * RANKS + (from))
#define CELLS (CONTROL_CELLS + RANKS * RANKS)
#define JUNK 255
#include "control_block.pml"

active [RANKS] proctype rank() {
  byte s = 1;
  byte peer, got;
  do
  :: s <= OPERATIONS ->
    publishEntry(s);
    peer = AFTER(ME);
    do
    :: peer != ME ->
#ifndef WITHOUT_ENTER
      awaitEntry(peer, s);
#endif
#ifndef DONE_FIRST
      store(OUTPUT(peer, ME), s);
#endif
      peer = AFTER(peer)
    :: else -> break
    od;
    store(DONE(ME), s);
    peer = AFTER(ME);
    do
    :: peer != ME ->
      awaitEntry(peer, s);
#ifndef WITHOUT_DONE
      SEEN(DONE(peer)) >= s;
#endif
      peer = AFTER(peer)
    :: else -> break
    od;

    peer = AFTER(ME);
    do
    :: peer != ME ->
      load(OUTPUT(ME, peer), got);
      assert(got == s);
      store(OUTPUT(ME, peer), JUNK);
      peer = AFTER(peer)
    :: else -> break
    od;
    peer = AFTER(ME);
    do
    :: peer != ME ->
      load(OUTPUT(ME, peer), got);
      assert(got == JUNK);
      peer = AFTER(peer)
    :: else -> break
    od;
    got = 0;
    s++
  :: else -> break
  od
}
