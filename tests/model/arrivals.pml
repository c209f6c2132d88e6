/* SPDX-License-Identifier: Apache-2.0 */
/* Counted arrivals, where ranks exceed cores: runAfterArrivals, and Claims::openPhase, runOpenPhase, next and run
 * (native/core/executor/cpu_executor.h, rank/claims.cpp). Ranks count themselves in. The last to come runs every item of a small
 * operation itself, and opens the first stage of a large one, whose items whoever is awake claims. Each operation is
 * a small operation, a large one of two phases, or an eager broadcast (broadcast.pml), which leaves
 * the words of counted arrivals alone. With 2 ranks, they sleep where they wait for their release
 * (doorbell.pml).
 *
 * A small item, and one of phase 0, reads its owner's input and the next rank's; one of phase 0 writes the owner's
 * middle, one of phase 1 reads the middles of the next rank that has items. INPUT stands for all that an ENTER
 * points to: its rank takes it away on return. STAGE, RELEASED and ARRIVALS don't wrap; ENTER does, and NEXT states
 * the last bit of its sequence alone.
 *
 * Checked: no deadlock and no lost wake; each item runs once, on what its ranks have not taken away yet; a phase
 * runs after the one before it; outputs are complete on return. Left out: how ranks sleep on an ENTER (sleep.pml);
 * DONE, which nobody awaits here. */

#if RANKS == 2
#define OPERATIONS 3
#define BLOCKS 2
#define HAS_ITEMS(rank) true
#define NEXT_OWNER(rank) AFTER(rank)
#else
#define OPERATIONS 1
#define BLOCKS 1
#define HAS_ITEMS(rank) ((rank) != 1)
#define NEXT_OWNER(rank) (2 - (rank))
#endif
#define OWNERS 2
#define PHASES 2
#define DEPTH 5
#define ARRIVALS CONTROL_CELLS
#define RELEASED (CONTROL_CELLS + 1)
#define STAGE (CONTROL_CELLS + 2)
#define REMAINING (CONTROL_CELLS + 3)
#define GROUP_CELLS (CONTROL_CELLS + 4)
#define NEXT(rank) (GROUP_CELLS + (rank))
#define FINISHED(rank) (GROUP_CELLS + RANKS + (rank))
#define INPUT(rank) (GROUP_CELLS + 2 * RANKS + (rank))
#define MIDDLE(rank, piece) (GROUP_CELLS + 3 * RANKS + (rank) * BLOCKS + (piece))
#define OUTPUT(rank, piece) (GROUP_CELLS + (3 + BLOCKS) * RANKS + (rank) * BLOCKS + (piece))
#define BELL_CELLS (GROUP_CELLS + (3 + 2 * BLOCKS) * RANKS)
#define CELLS (BELL_CELLS + 1 + RANKS)
#define JUNK 255
#include "control_block.pml"
#include "doorbell.pml"

/* NEXT: the last bit of the sequence, the phase, pieces taken from the front, and pieces left. */
#define WORK(s, phase, pieces) ((((s) & 1) * 4 + (phase)) * 16 + (pieces))
#define FRONT(word) (((word) >> 2) & 3)
#define REST(word) ((word) & 3)
#define FREE_IN(phase, word) ((word) / 16 == WORK(s, phase, 0) / 16 && REST(word) > 0)
#define FREE(word) FREE_IN(phase, word)

#ifdef NARROW_STAGE
#define STAGED(s, phase) (((s) & 1) * 4 + (phase))
#else
#define STAGED(s, phase) ((s) * 4 + (phase))
#endif
#ifdef NARROW_RELEASED
#define IS_RELEASED REACHED(SEEN(RELEASED), s)
#else
#define IS_RELEASED (SEEN(RELEASED) >= s)
#endif

mtype = {NONE, EAGER, SMALL, LARGE};

/* What the first rank to call the operation chose. */
mtype chosen[OPERATIONS + 1] = NONE;

/* How often a piece has run in each phase. */
byte ran[OPERATIONS * PHASES * RANKS * BLOCKS];
#define RAN(owner, piece) ran[(((s - 1) * PHASES + phase) * RANKS + (owner)) * BLOCKS + (piece)]

inline choose(s) {
  atomic {
    if
    :: chosen[s] == NONE && s < OPERATIONS -> chosen[s] = EAGER
    :: chosen[s] == NONE -> chosen[s] = SMALL
    :: chosen[s] == NONE -> chosen[s] = LARGE
    :: else
    fi
  }
}

/* The item (owner, phase, piece) that was claimed. All that it reads has left its writers' FIFOs. */
inline runItem(owner) {
  d_step {
    assert(RAN(owner, piece) == 0);
    RAN(owner, piece)++
  };
  assert(SEEN(INPUT(owner)) == s);
  if
  :: phase == 0 ->
    assert(SEEN(INPUT(AFTER(owner))) == s);
    store(MIDDLE(owner, piece), s)
  :: else ->
    assert(SEEN(MIDDLE(NEXT_OWNER(owner), 0)) == s && SEEN(MIDDLE(NEXT_OWNER(owner), BLOCKS - 1)) == s);
    store(OUTPUT(owner, piece), s)
  fi
}

/* All items of a small operation, of one phase. */
inline runSmall() {
  do
  :: owner == RANKS -> break
  :: else ->
    do
    :: piece == BLOCKS || !HAS_ITEMS(owner) -> break
    :: else ->
      assert(SEEN(INPUT(owner)) == s && SEEN(INPUT(AFTER(owner))) == s);
      store(OUTPUT(owner, piece), s);
      piece++
    od;
    piece = 0;
    owner++
  od;
  owner = 0
}

inline openStage(first) {
  if
  :: (first) < PHASES ->
#ifdef STAGE_FIRST
    store(STAGE, STAGED(s, first));
    store(REMAINING, OWNERS);
#else
    store(REMAINING, OWNERS);
    store(STAGE, STAGED(s, first));
#endif
  :: else ->
#ifdef NARROW_RELEASED
    store(RELEASED, LOW(s))
#else
    store(RELEASED, s)
#endif
  fi;
  storeLoad();
  wakeSleepers()
}

/* Claims and runs one piece of `owner` in `phase`, if there is one. */
inline runNext(owner) {
  load(NEXT(owner), word);
  if
  :: FREE(word) ->
#ifdef LOOK_BEFORE_CLAIM
    assert(SEEN(INPUT(owner)) == s);
#endif
    atomic {
      DRAINED ->
#ifndef WITHOUT_EXCHANGE
      if
      :: memory[NEXT(owner)] == word ->
#endif
        if
        :: owner == ME -> piece = FRONT(word); memory[NEXT(owner)] = word + 3
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
#ifdef FINISHED_FIRST
      atomic { DRAINED -> memory[FINISHED(owner)]++; last = (memory[FINISHED(owner)] == BLOCKS) };
#endif
      runItem(owner);
      piece = 0;
#ifndef FINISHED_FIRST
      atomic { DRAINED -> memory[FINISHED(owner)]++; last = (memory[FINISHED(owner)] == BLOCKS) };
#endif
      if
      :: last ->
        store(FINISHED(owner), 0);
        store(NEXT(owner), WORK(s, phase + 1, BLOCKS));
#ifndef WITHOUT_REMAINING
        atomic { DRAINED -> memory[REMAINING]--; last = (memory[REMAINING] == 0) };
#endif
        if
        :: last -> last = false; openStage(phase + 1)
        :: else
        fi
      :: else
      fi
    :: else
    fi
  :: else -> word = 0
  fi
}

/* A rank looks over and over; here it goes on once there is a piece for it, as far as it sees. */
#define IS_OPEN (SEEN(STAGE) / 4 == STAGED(s, 0) / 4)
#define HAS_PIECE(rank) (FREE_IN(SEEN(STAGE) & 3, SEEN(NEXT(rank))))

inline runStage() {
  phase = SEEN(STAGE) & 3;
  owner = ME;
  do
  :: runNext(owner);
    owner = AFTER(owner);
    if
    :: owner == ME -> break
    :: else
    fi
  od;
  owner = 0;
  phase = 0
}

#define ANY_PIECE (large && IS_OPEN && (HAS_PIECE(0) || HAS_PIECE(1) || HAS_PIECE(RANKS - 1)))

inline awaitRelease() {
  do
  :: IS_RELEASED -> break
  :: ANY_PIECE -> runStage()
#if RANKS == 2
  :: !IS_RELEASED && !ANY_PIECE ->
    if
    :: !lying ->
      lieDown();
      lying = true
    :: else ->
      sleep();
      getUp();
      lying = false
    fi
#endif
  od;
  if
  :: lying -> getUp(); lying = false
  :: else
  fi
}

inline offerItems() {
  if
  :: chosen[s] == LARGE && HAS_ITEMS(ME) ->
    store(FINISHED(ME), 0);
    store(NEXT(ME), WORK(s, 0, BLOCKS))
  :: else
  fi
}

inline awaitPrevious() {
  peer = AFTER(ME);
  do
  :: !allEntered && peer != ME ->
    awaitEntry(peer, s - 1);
    peer = AFTER(peer)
  :: else -> break
  od
}

active [RANKS] proctype rank() {
  byte s = 1;
  byte peer, owner, phase, piece, word, got, bell, entered;
  bool large, allEntered, arrivedLast, claimed, last, lying;
  do
  :: s <= OPERATIONS ->
    choose(s);
    large = (chosen[s] == LARGE);
#ifdef OFFERED_EARLY
    offerItems();
#endif
    awaitPrevious();
    store(INPUT(ME), s);
#ifndef OFFERED_EARLY
    offerItems();
#endif
    publishEntry(s);
    if
    :: chosen[s] == EAGER ->
      allEntered = false;
      if
      :: s % RANKS != ME -> awaitEntry(s % RANKS, s)
      :: else
      fi
    :: else ->
      entered++;
      atomic {
        DRAINED ->
        memory[ARRIVALS]++;
        arrivedLast = (memory[ARRIVALS] == entered * RANKS)
      };
      if
      :: arrivedLast ->
        peer = AFTER(ME);
        do
        :: peer == ME -> break
        :: else ->
          assert(SEEN(STATED(peer, s)) == s);
          peer = AFTER(peer)
        od;
        if
        :: large -> openStage(0)
        :: else ->
          runSmall();
#ifdef NARROW_RELEASED
          store(RELEASED, LOW(s))
#else
          store(RELEASED, s)
#endif
        fi
      :: else
      fi;
      if
      :: large || !arrivedLast -> awaitRelease()
      :: else
      fi;
      arrivedLast = false;
      allEntered = true;
      storeLoad();
      wakeSleepers();
      piece = 0;
      do
      :: piece == BLOCKS || !HAS_ITEMS(ME) -> break
      :: else ->
        load(OUTPUT(ME, piece), got);
        assert(got == s);
        piece++
      od;
      piece = 0;
      got = 0
    fi;
    store(INPUT(ME), JUNK);
    s++
  :: else -> break
  od
}
