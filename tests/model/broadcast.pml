/* SPDX-License-Identifier: Apache-2.0 */
/* Root-staged broadcast where each rank has a core: runDirect (native/core/executor/cpu_executor.h) with
 * kernels/broadcast.h. A large input is read where it lies, and the root leaves after every reader's DONE. An
 * eager one (Staged<Broadcast>) rides with the root's ENTER, and nobody acknowledges. Each operation has any root
 * and either size; eager ones leave DONE alone.
 *
 * Checked: no deadlock; each reader gets the input of this operation's root; a root may overwrite its input
 * as soon as it returns, which it does here; an ENTER's slot is not overwritten while anybody reads it. Left
 * out: a reader's own output, which nobody else touches, and items run by other ranks (claim.pml). */

#define OPERATIONS 3
#define DEPTH 4
#define INPUT(rank) (CONTROL_CELLS + (rank))
#define CELLS (CONTROL_CELLS + RANKS)
#define JUNK 255
#include "control_block.pml"

/* 1 + root, and RANKS more where eager: what the first rank to call the operation chose. The protocol is the
 * same for each rank, so the first operation's root may be rank 0. */
byte chosen[OPERATIONS + 1];

inline choose(s) {
  atomic {
    if
    :: chosen[s] == 0 && s == 1 -> chosen[s] = 1
    :: chosen[s] == 0 && s == 1 -> chosen[s] = 1 + RANKS
    :: chosen[s] == 0 && s > 1 -> select(peer : 1 .. 2 * RANKS); chosen[s] = peer
    :: else
    fi;
    root = (chosen[s] - 1) % RANKS;
    eager = chosen[s] > RANKS
  }
}

active [RANKS] proctype rank() {
  byte s = 1;
  byte allEntered = 0;
  byte root, peer, got;
  bool eager;
  do
  :: s <= OPERATIONS ->
    choose(s);
#ifndef WITHOUT_PREVIOUS_ENTER
    peer = AFTER(ME);
    do
    :: allEntered < s - 1 && peer != ME ->
      awaitEntry(peer, s - 1);
      peer = AFTER(peer)
    :: else -> break
    od;
#endif
    if
    :: root == ME ->
      store(INPUT(ME), s);
      publishEntry(s);
      if
      :: !eager ->
        peer = AFTER(ME);
        do
        :: peer != ME ->
          awaitEntry(peer, s);
#ifndef WITHOUT_DONE
          IS_DONE(peer, s);
#endif
          peer = AFTER(peer)
        :: else -> break
        od;
        allEntered = s
      :: else
      fi;
      store(INPUT(ME), JUNK)
    :: else ->
      publishEntry(s);
#ifndef WITHOUT_ENTER
      awaitEntry(root, s);
#endif
      if
      :: eager -> got = SEEN(STATED(root, s))
      :: else ->
        got = SEEN(INPUT(root));
        store(DONE(ME), DONE_WORD(s))
      fi;
      assert(got == s);
      got = 0
    fi;
    s++
  :: else -> break
  od
}
