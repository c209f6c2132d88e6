/* SPDX-License-Identifier: Apache-2.0 */
/* Items that are claimed one by one: runOwnItems, and Claims::help, next and run
 * (native/core/executor/cpu_executor.h, rank/claims.cpp) with a large broadcast of BLOCKS pieces (broadcast.pml), the root moving on by
 * one each operation. An owner takes pieces from the front, a rank that waits takes others' from the back. Ranks
 * sleep where they wait for DONE (doorbell.pml), and take another's item in the second look too. With 2 ranks, rank
 * 0 has a worker thread (Helped) in the first operation, which takes pieces of any rank while rank 0 is
 * inside.
 *
 * Checked: no deadlock and no lost wake; each piece is moved once an operation, after the ENTERs that it needs and
 * while its owner is inside; outputs are complete on return; a root may overwrite its input when it returns. Left
 * out: sleeps on an ENTER (sleep.pml); how a worker enters and leaves its rank's operation. */

#if RANKS == 2
#define WORKER
#define PROCESSORS (RANKS + 1)
#define BLOCKS 2
#define OPERATIONS 2
#else
#define BLOCKS 1
#define OPERATIONS 1
#endif
#define DEPTH 6
#define INPUT(rank) (CONTROL_CELLS + (rank))
#define NEXT(rank) (CONTROL_CELLS + RANKS + (rank))
#define FINISHED(rank) (CONTROL_CELLS + 2 * RANKS + (rank))
#define OUTPUT(rank, piece) (CONTROL_CELLS + 3 * RANKS + (rank) * BLOCKS + (piece))
#define BELL_CELLS (CONTROL_CELLS + (3 + BLOCKS) * RANKS)
#define CELLS (BELL_CELLS + 1 + RANKS)
#define JUNK 255
#include "control_block.pml"
#include "doorbell.pml"

/* NEXT: the sequence and whether the phase is over, pieces taken from the front, and pieces left. The word of a
 * phase that is over has none left. */
#ifdef WITHOUT_SEQUENCE
#define WORK(s, over) ((over) * 16 + (1 - (over)) * BLOCKS)
#else
#define WORK(s, over) ((2 * ((s) & 1) + (over)) * 16 + (1 - (over)) * BLOCKS)
#endif
#define FRONT(word) (((word) >> 2) & 3)
#define REST(word) ((word) & 3)
#define FREE(word) ((word) / 16 == WORK(s, 0) / 16 && REST(word) > 0)

/* Whether a piece of `owner` may run. */
#define CLAIMABLE(owner) \
  (ENTERED(owner, s) && (root == owner || ENTERED(root, s)) && FREE(SEEN(NEXT(owner))))

/* The rank that a thread belongs to. */
#define SELF (ME % RANKS)

/* The operation that last moved a piece. */
byte moved[RANKS * BLOCKS];

/* Claims and runs one piece of `owner`, if there is one. */
inline runNext(owner) {
  load(NEXT(owner), word);
  if
  :: FREE(word) ->
    atomic {
      DRAINED ->
#ifndef WITHOUT_EXCHANGE
      if
      :: memory[NEXT(owner)] == word ->
#endif
        if
        :: owner == SELF -> piece = FRONT(word); memory[NEXT(owner)] = word + 3
        :: else -> piece = FRONT(word) + REST(word) - 1; memory[NEXT(owner)] = word - 1
        fi;
        claimed = true
#ifndef WITHOUT_EXCHANGE
      :: else
      fi;
#endif
      word = 0
    };
    if
    :: claimed ->
      claimed = false;
      d_step { assert(moved[owner * BLOCKS + piece] < s); moved[owner * BLOCKS + piece] = s };
      assert(SEEN(STATED(owner, s)) == s);
#ifdef FINISHED_FIRST
      atomic { DRAINED -> memory[FINISHED(owner)]++; last = (memory[FINISHED(owner)] == BLOCKS) };
#endif
      load(INPUT(root), got);
      store(OUTPUT(owner, piece), got);
      piece = 0;
      got = 0;
#ifndef FINISHED_FIRST
      atomic { DRAINED -> memory[FINISHED(owner)]++; last = (memory[FINISHED(owner)] == BLOCKS) };
#endif
      if
      :: last ->
        last = false;
        store(FINISHED(owner), 0);
        store(NEXT(owner), WORK(s, 1));
        store(DONE(owner), s);
#ifndef WITHOUT_RING_AFTER_DONE
        storeLoad();
        wakeSleepers()
#endif
      :: else
      fi
    :: else
    fi
  :: else -> word = 0
  fi
}

inline helpOthers() {
  owner = AFTER(ME);
  do
  :: owner == ME -> break
  :: else ->
    if
    :: CLAIMABLE(owner) -> runNext(owner)
    :: else
    fi;
    owner = AFTER(owner)
  od
}

#ifdef WORKER
/* The operation that the worker may help with, or 0, and whether it is at it. */
byte open;
bool inside;
#endif

inline awaitDone(rank) {
  do
  :: load(DONE(rank), got);
    if
    :: got >= s -> got = 0; break
    :: else -> got = 0
    fi;
    helpOthers();
    if
    :: !lying ->
      if
      :: !announced ->
        announced = true;
        storeLoad();
        wakeSleepers()
      :: else
      fi;
      lieDown();
      lying = true
    :: else ->
      sleep();
      getUp();
      lying = false
    fi
  od;
  if
  :: lying -> getUp(); lying = false
  :: else
  fi;
  announced = false
}

active [RANKS] proctype rank() {
  byte s = 1;
  byte root, peer, owner, word, piece, got, bell;
  bool claimed, last, lying, announced;
  do
  :: s <= OPERATIONS ->
    root = s % RANKS;
    if
    :: root == ME -> store(INPUT(ME), s)
    :: else
    fi;
    peer = AFTER(ME);
    do
    :: peer != ME ->
      ENTERED(peer, s - 1);
      peer = AFTER(peer)
    :: else -> break
    od;
    store(FINISHED(ME), 0);
    store(NEXT(ME), WORK(s, 0));
    publishEntry(s);
#ifdef WORKER
    if
    :: ME == 0 && s == 1 -> open = s
    :: else
    fi;
#endif
    do
    :: load(NEXT(ME), word);
      if
      :: FREE(word) ->
        word = 0;
        root == ME || ENTERED(root, s);
        runNext(ME)
      :: else -> word = 0; break
      fi
    od;
    peer = ME;
    do
    :: awaitDone(peer);
      peer = AFTER(peer);
      if
      :: root != ME || peer == ME -> break
      :: else -> ENTERED(peer, s)
      fi
    od;
#ifdef WORKER
    if
    :: ME == 0 -> open = 0; !inside
    :: else
    fi;
#endif
    storeLoad();
    wakeSleepers();
    peer = 0;
    do
    :: peer < BLOCKS ->
      load(OUTPUT(ME, peer), got);
      assert(got == s);
      got = 0;
      peer++
    :: else -> break
    od;
    if
    :: root == ME -> store(INPUT(ME), JUNK)
    :: else
    fi;
    s++
  :: else -> break
  od
}

#ifdef WORKER
/* A worker looks over and over; here it blocks until there is a piece for it. */
active proctype worker() {
  byte s, root, word, piece, got, bell;
  bool claimed, last;
end:
  do
  :: atomic { open != 0 -> inside = true; s = open; root = s % RANKS };
    if
    :: CLAIMABLE(0) -> runNext(0)
    :: CLAIMABLE(1) -> runNext(1)
    :: open == 0
    fi;
    inside = false
  od
}
#endif
