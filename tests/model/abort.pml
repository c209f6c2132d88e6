/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a wait: Waits::ended and missed (native/core/rank/waits.cpp), Gate, Comm::close, and
 * Group::publishFailure (native/core/group.cpp). The ranks call one barrier (barrier.pml) and sleep wherever they
 * wait (doorbell.pml). Rank 0 may instead abort the communicator, or close its handle. The deadline of any rank
 * may pass when it looks. With 2 ranks, another thread may close the last rank's handle at any time.
 *
 * Checked: every wait ends, also when no deadline ever passes; the record that stands is whole when it is
 * seen, and every rank that fails raises that one. A record is two cells, to be told from a torn one. Left out:
 * what a record says; writers that die (record.pml); looks that only hasten an end. */

#if RANKS == 2
#define CLOSER
#define PROCESSORS (RANKS + 1)
#endif
#define DEPTH 3
#define BELL_CELLS CONTROL_CELLS
#define STATE_CELLS (BELL_CELLS + 1 + RANKS)
#define BUSY(rank) (STATE_CELLS + 3 * (rank))
#define CLOSING(rank) (STATE_CELLS + 3 * (rank) + 1)
#define LEFT(rank) (STATE_CELLS + 3 * (rank) + 2)
#define GROUP_CELLS (STATE_CELLS + 3 * RANKS)
#define LEAVERS GROUP_CELLS
#define FAILING (GROUP_CELLS + 1)
#define FAILURE (GROUP_CELLS + 2)
#define RECORD(own) (GROUP_CELLS + 3 + 2 * (own))
#define CELLS (RECORD(RANKS))
#include "control_block.pml"
#include "doorbell.pml"

/* CLOSED, LEFT_BEHIND and LATE publish a record, FAILED finds one. */
mtype = {OK, FAILED, CLOSED, LEFT_BEHIND, LATE};

/* What the first rank to fail raised. */
byte raised;

inline stand() {
#ifdef WITHOUT_STORELOAD
  store(FAILURE, own + 1)
#else
  atomic {
    DRAINED ->
    if
    :: memory[FAILURE] == 0 -> memory[FAILURE] = own + 1
    :: else
    fi
  }
#endif
}

inline publish() {
  if
  :: SEEN(FAILURE) == 0 ->
    atomic { DRAINED -> own = memory[FAILING]; memory[FAILING] = own + 1 };
#ifdef FAILURE_FIRST
    stand();
#endif
    store(RECORD(own), ME + 1);
    store(RECORD(own) + 1, ME + 1);
#ifndef FAILURE_FIRST
    stand();
#endif
    own = 0
  :: else
  fi;
  wakeSleepers()
}

inline leave(rank) {
  atomic { DRAINED -> memory[LEFT(rank)] = 1 };
  atomic { DRAINED -> memory[LEAVERS]++ };
  wakeSleepers()
}

inline ended() {
  if
  :: SEEN(FAILURE) != 0 -> code = FAILED
  :: else ->
    if
    :: SEEN(CLOSING(ME)) != 0 -> code = CLOSED
    :: else ->
      if
      :: SEEN(LEAVERS) != 0 ->
        other = 0;
        do
        :: other == RANKS -> break
        :: other < RANKS ->
          if
          :: SEEN(LEFT(other)) == 0 -> other++
          :: else ->
            if
            :: SEEN(ENTER(other, 1)) == 0 -> code = LEFT_BEHIND; break
            :: else -> other++
            fi
          fi
        od;
        other = 0
      :: else
      fi;
      if
      :: code == OK -> code = LATE
      :: true
      fi
    fi
  fi
}

active [RANKS] proctype rank() {
  byte peer, other, bell, own;
  mtype code = OK;

  if
  :: ME == 0 -> publish(); goto out
  :: ME == 0 -> leave(0); goto out
  :: true
  fi;

  atomic { DRAINED -> memory[BUSY(ME)] = 1 };
  if
  :: SEEN(CLOSING(ME)) != 0 || SEEN(FAILURE) != 0 ->
    atomic { DRAINED -> memory[BUSY(ME)] = 0 };
    goto out
  :: else
  fi;
  store(ENTER(ME, 1), 1);
  peer = AFTER(ME);
  do
  :: peer == ME || code != OK -> break
  :: else ->
    if
    :: SEEN(ENTER(peer, 1)) != 0
    :: else ->
      storeLoad();
      wakeSleepers();
      do
      :: SEEN(ENTER(peer, 1)) != 0 || code != OK -> break
      :: else ->
#ifdef WITHOUT_SECOND_LOOK
        ended();
#endif
        lieDown();
        if
        :: SEEN(ENTER(peer, 1)) != 0
        :: else ->
#ifndef WITHOUT_SECOND_LOOK
          ended();
#endif
          if
          :: code == OK -> sleep()
          :: else
          fi
        fi;
        getUp()
      od;
      if
      :: code == CLOSED || code == LEFT_BEHIND || code == LATE -> publish()
      :: else
      fi
    fi;
    peer = AFTER(peer)
  od;
  if
  :: code != OK ->
    assert(SEEN(FAILURE) != 0);
    own = SEEN(FAILURE) - 1;
    other = SEEN(RECORD(own));
    assert(other != 0 && SEEN(RECORD(own) + 1) == other);
    own = 0;
    assert(raised == 0 || raised == other);
    raised = other;
    other = 0
  :: else
  fi;
  atomic { DRAINED -> memory[BUSY(ME)] = 0 };
  wakeSleepers();
out:
  skip
}

#ifdef CLOSER
active proctype closer() {
  byte bell;
  if
  :: true ->
    atomic { DRAINED -> memory[CLOSING(RANKS - 1)] = 1 };
    wakeSleepers();
    SEEN(BUSY(RANKS - 1)) == 0;
    leave(RANKS - 1)
  :: true
  fi
}
#endif
