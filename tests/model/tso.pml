/* SPDX-License-Identifier: Apache-2.0 */
/* Processors as x86 orders them (TSO): each has a FIFO of stores that it alone sees until they drain,
 * one by one and at any time, into the memory that all share. A read-modify-write, or a seq_cst store,
 * waits until its processor's FIFO is empty and then works on memory. Release stores and acquire loads are plain
 * ones. What a compiler may reorder, and non-temporal stores, are not modelled.
 *
 * Weaker processors are not modelled either. Where the FIFO has to drain before a look, that is behind a
 * read-modify-write, orderLooks() of native/base/cpu.h is a fence there.
 *
 * The includer defines RANKS, CELLS (of memory, a byte each, zero at first) and DEPTH (of a FIFO; a
 * store to a full one waits, as in hardware). A rank is a process of `active [RANKS] proctype rank()`, the
 * first declared after this file, with ME as its number and processor. A model with further threads says in
 * PROCESSORS how many there are in all; their ME goes on from RANKS. */

#ifndef PROCESSORS
#define PROCESSORS RANKS
#endif

byte memory[CELLS];

typedef Fifo {
  byte stores;
  byte cell[DEPTH];
  byte value[DEPTH];
};
Fifo fifo[PROCESSORS];

hidden byte scan;

active [PROCESSORS] proctype drain() {
end:
  do
  :: d_step {
      fifo[_pid].stores > 0 ->
      memory[fifo[_pid].cell[0]] = fifo[_pid].value[0];
      fifo[_pid].stores--;
      scan = 0;
      do
      :: scan < fifo[_pid].stores ->
        fifo[_pid].cell[scan] = fifo[_pid].cell[scan + 1];
        fifo[_pid].value[scan] = fifo[_pid].value[scan + 1];
        scan++
      :: else -> break
      od;
      fifo[_pid].cell[scan] = 0;
      fifo[_pid].value[scan] = 0;
      scan = 0
    }
  od
}

#define ME (_pid - PROCESSORS)

inline store(at, what) {
  d_step {
    fifo[ME].stores < DEPTH ->
    fifo[ME].cell[fifo[ME].stores] = at;
    fifo[ME].value[fifo[ME].stores] = what;
    fifo[ME].stores++
  }
}

/* The newest of the rank's own stores to the cell, else memory. */
inline load(at, into) {
  d_step {
    into = memory[at];
    scan = 0;
    do
    :: scan < fifo[ME].stores ->
      if
      :: fifo[ME].cell[scan] == at -> into = fifo[ME].value[scan]
      :: else
      fi;
      scan++
    :: else -> break
    od;
    scan = 0
  }
}

/* Guards a read-modify-write: atomic { DRAINED -> ... memory[...] ... } */
#define DRAINED (fifo[ME].stores == 0)

/* memory[at] of a cell that the rank itself does not write: what polling it comes to see. A poll that
 * never succeeds is a process that blocks for ever, which spin reports as an invalid end state. */
#define SEEN(at) (memory[at])
