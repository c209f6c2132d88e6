/* SPDX-License-Identifier: Apache-2.0 */
/* The in-line executor: runInLine, awaitInLine and tellInLine (windlass/in_line.h), and the host's part of them,
 * runOnCores (native/core/executor/in_line_executor.h). 2 ranks have 2 cores each, 3 ranks one. Core 0's thread enters
 * for its rank, waits for every rank's ENTER, and opens the operation to the rank's other cores; it leaves once
 * all of them are over. The kernel has two phases and a block for each core: a block writes its cell of the
 * rank's memory, then reads all cells of its own rank's and of the left neighbour's. Every rank waits for every rank
 * before it leaves, and then uses the memory for something else.
 *
 * Checked: no deadlock; what a block reads is what this operation wrote there. Left out: that words wrap, which a
 * test of reachedInLine goes over; ENTER's own protocol (barrier.pml). */

#if RANKS == 2
#define CORES 2
#else
#define CORES 1
#endif
#define PROCESSORS (RANKS * CORES)
#define OPERATIONS 2
#define DEPTH 4
#define RANK (ME / CORES)
#define CORE (ME % CORES)

#define OUT(rank, core) ((rank) * CORES + (core))
#define LINE(owner, peer, core) (RANKS * CORES + ((owner) * RANKS + (peer)) * CORES + (core))
#define ENTER(rank) (RANKS * CORES * (RANKS + 1) + (rank))
#define OPEN(rank) (ENTER(RANKS) + (rank))
#define OVER(rank, core) (ENTER(RANKS) + RANKS + (rank) * CORES + (core))
#define CELLS (ENTER(RANKS) + RANKS + RANKS * CORES)
#include "tso.pml"

#define WORD(s, phases) ((s) * 4 + (phases))
#define LEFT ((RANK + RANKS - 1) % RANKS)

/* All cores of a rank. A line that this core wrote itself may be in its FIFO still. */
inline await(peer, phases) {
  c = 0;
  do
  :: c < CORES ->
    if
    :: peer != RANK || c != CORE -> SEEN(LINE(RANK, peer, c)) >= WORD(s, phases)
    :: else
    fi;
    c++
  :: else -> break
  od
}

inline tell(phases) {
  r = 0;
  do
  :: r < RANKS -> store(LINE(r, RANK, CORE), WORD(s, phases)); r++
  :: else -> break
  od
}

inline check(peer) {
  c = 0;
  do
  :: c < CORES -> load(OUT(peer, c), seen); assert(seen == s); c++
  :: else -> break
  od
}

active [PROCESSORS] proctype core() {
  byte s = 1;
  byte r;
  byte c;
  byte seen;
  do
  :: s <= OPERATIONS ->
    if
    :: CORE == 0 ->
      store(ENTER(RANK), s);
      r = 0;
      do
      :: r < RANKS ->
        if
        :: r != RANK -> SEEN(ENTER(r)) >= s
        :: else
        fi;
        r++
      :: else -> break
      od;
      store(OPEN(RANK), s)
    :: else -> SEEN(OPEN(RANK)) >= s
    fi;
#ifdef SIGNAL_FIRST
    tell(1);
#endif
    store(OUT(RANK, CORE), s);
#ifndef SIGNAL_FIRST
    tell(1);
#endif
#ifndef WITHOUT_OWN
    await(RANK, 1);
#endif
#ifndef WITHOUT_NEED
    await(LEFT, 1);
#endif
    check(RANK);
    check(LEFT);
    tell(2);
#ifndef WITHOUT_LEAVE
    r = 0;
    do
    :: r < RANKS -> await(r, 2); r++
    :: else -> break
    od;
#endif
    if
    :: CORE == 0 ->
      c = 1;
      do
      :: c < CORES -> SEEN(OVER(RANK, c)) >= s; c++
      :: else -> break
      od;
      c = 0;
      do
      :: c < CORES -> store(OUT(RANK, c), 0); c++
      :: else -> break
      od
    :: else -> store(OVER(RANK, CORE), s)
    fi;
    s++
  :: else -> break
  od
}
