/* SPDX-License-Identifier: Apache-2.0 */
/* A move whose version rides with ENTER, where each rank has a core: runDirect and ask (native/core/executor/cpu_executor.h,
 * executor.h), and Transfer::move (native/transfer/transfer.cpp), which says of one that failed whether anything may have
 * moved: a receiver in place goes on with what it holds where nothing has. Each rank enters and waits for every rank's
 * ENTER, until its deadline passes, at any time, or a failure stands. Once all are there it looks at failures again, and
 * writes the target of the next rank. A rank that fails looks at the ENTERs again.
 *
 * Checked: nobody writes the target of a rank that was told that nothing has moved; no deadlock. Left out: what
 * ranks name; items run by other ranks (claim.pml); counted arrivals, which are read-modify-writes
 * (arrivals.pml). */

#define DEPTH 3
#define ENTER(rank) (rank)
#define FAILED RANKS
#define TARGET(rank) (RANKS + 1 + (rank))
#define CELLS (2 * RANKS + 1)
#include "tso.pml"

#define NEXT ((ME + 1) % RANKS)

bool untouched[RANKS]; /* told that nothing has moved */

inline lookAtAll() {
  all = true;
  peer = 0;
  do
  :: peer < RANKS ->
    all = all && (peer == ME || SEEN(ENTER(peer)) == 1);
    peer++
  :: else -> break
  od
}

active [RANKS] proctype rank() {
  byte peer;
  bool all;
  store(ENTER(ME), 1);
#ifndef WITHOUT_STORELOAD
  DRAINED;
#endif
  peer = 0;
  do
  :: peer < RANKS && (peer == ME || SEEN(ENTER(peer)) == 1) -> peer++
  :: peer == RANKS -> break
  :: SEEN(FAILED) == 1 -> goto failed
  :: peer < RANKS && peer != ME && SEEN(ENTER(peer)) == 0 ->
#ifdef LOOKED_FIRST
    lookAtAll();
    atomic { DRAINED -> memory[FAILED] = 1 };
    goto told
#else
    atomic { DRAINED -> memory[FAILED] = 1 };
    goto failed
#endif
  od;
#ifndef WITHOUT_SECOND_LOOK
  if
  :: SEEN(FAILED) == 1 -> goto failed
  :: else
  fi;
#endif
  store(TARGET(NEXT), 1);
  goto over;
failed:
  lookAtAll();
told:
  untouched[ME] = !all;
over:
  skip
}

#define TORN(rank) (untouched[rank] && memory[TARGET(rank)] == 1)

active proctype torn() {
end:
#if RANKS == 2
  TORN(0) || TORN(1) -> assert(false)
#else
  TORN(0) || TORN(1) || TORN(2) -> assert(false)
#endif
}
