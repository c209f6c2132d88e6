/* SPDX-License-Identifier: Apache-2.0 */
/* The failure record, whose writers may die: Group::publishFailure and failure() (native/core/group.cpp). Each
 * rank publishes a failure, and may die at any step: between its claim of a record and the publication, half way
 * through the record too. A rank that lives then reads the record that stands. There is one record fewer than
 * ranks, and the last is whole from the start: who finds no other waits until one stands, or its limit passes, at any
 * time, and publishes that one.
 *
 * Checked: every rank that lives has a record on return; it is whole, and the same for all. Left out: who wakes
 * whom (abort.pml). */

#define RECORDS RANKS
#define LAST (RECORDS - 1)

byte failing;            /* ranks that took a record to write */
byte failed;             /* of the record that stands, from 1 */
byte first[RECORDS];     /* a record is two cells, to be told from a torn one */
byte second[RECORDS];
byte raised;             /* what the first to read it read */
byte deaths;

#define MAY_DIE \
  if \
  :: deaths < RANKS - 1 -> deaths++; goto dead \
  :: true \
  fi

inline write(record, what) {
  first[record] = what;
  MAY_DIE;
  second[record] = what
}

inline stand(record) {
#ifdef WITHOUT_EXCHANGE
  failed = record + 1
#else
  atomic {
    if
    :: failed == 0 -> failed = record + 1
    :: else
    fi
  }
#endif
}

active [RANKS] proctype rank() {
  byte own, got;

  if
  :: failed == 0 ->
#ifdef ONE_RECORD
    /* Whoever comes first writes the one record; the others wait for it. */
    atomic { own = (failing == 0 -> 0 : 1); failing = 1 };
    MAY_DIE;
    if
    :: own == 0 -> write(0, _pid + 1); MAY_DIE; stand(0)
    :: else -> failed != 0
    fi
#else
    atomic { own = (failing < LAST -> failing : LAST); failing++ };
    MAY_DIE;
#ifdef STANDS_FIRST
    stand(own);
#endif
    if
    :: own < LAST -> write(own, _pid + 1)
    :: own == LAST && true /* its limit has passed */
    :: own == LAST && failed != 0
    fi;
    MAY_DIE;
    stand(own)
#endif
  :: failed != 0
  fi;
  assert(failed != 0);
  d_step {
    own = failed - 1;
    got = first[own];
#ifndef ONE_RECORD
    assert(own == LAST || got != 0);
#endif
    assert(got == second[own]);
    got = got + 10 * own + 1;
    assert(raised == 0 || raised == got);
    raised = got
  };
dead:
  skip
}
