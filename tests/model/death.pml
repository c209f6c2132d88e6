/* SPDX-License-Identifier: Apache-2.0 */
/* A death inside a claimed item: Claims::run and the waits for DONE (native/core/executor/cpu_executor.h), Watch::bury
 * (native/core/watch.cpp), Group::quiescent and retire (native/core/group.cpp). Each rank is inside one operation; any
 * rank claims and runs items, its own and others', until all have run or a failure stands, and then leaves its call. A
 * rank but one may die at any step, inside an item too: what it claimed nobody runs any more. A watch sees that it is
 * gone, and publishes. Rank 0, once it has left, frees memory that all items name: at once where none failed, else once
 * nobody who lives is inside a call.
 *
 * Checked: every rank that lives leaves; no item runs twice; the memory is freed, and no rank that lives touches it
 * afterwards; no rank leaves well without all items having run. How items are claimed in memory: claim.pml. */

#define ITEMS 3

byte claimed;    /* items that were taken */
byte finished;   /* items that have run */
bool busy[RANKS];
bool dead[RANKS];
bool lost[RANKS];
bool failed;
bool freed;
byte deaths;

#define MAY_DIE \
  if \
  :: deaths < RANKS - 1 && _pid > 0 -> deaths++; dead[_pid] = true; goto gone \
  :: true \
  fi

#ifdef COUNTS_THE_DEAD
#define IS_INSIDE(rank) busy[rank]
#else
#define IS_INSIDE(rank) (busy[rank] && !lost[rank])
#endif
#if RANKS == 2
#define QUIESCENT (!failed || (!IS_INSIDE(0) && !IS_INSIDE(1)))
#else
#define QUIESCENT (!failed || (!IS_INSIDE(0) && !IS_INSIDE(1) && !IS_INSIDE(2)))
#endif

byte entered;

active [RANKS] proctype rank() {
  bool takes;

  busy[_pid] = true;
  entered++;
  entered == RANKS; /* a death before it is no death inside an item */
  do
  :: finished == ITEMS -> break
  :: failed -> break
  :: _pid == 0 -> failed = true /* its deadline passes */
  :: claimed < ITEMS && !failed ->
    atomic {
      if
      :: claimed < ITEMS -> claimed++; takes = true
      :: else
      fi
    };
    MAY_DIE;
    if
    :: takes ->
      takes = false;
      assert(!freed);
      MAY_DIE;
      atomic { assert(!freed); finished++; assert(finished <= ITEMS) }
    :: else
    fi
  od;
  assert(failed || finished == ITEMS);
  MAY_DIE;
  busy[_pid] = false;
  if
  :: _pid == 0 ->
#ifdef FREED_AT_ONCE
    freed = true
#else
    if
    :: !failed && finished == ITEMS -> freed = true
    :: failed -> QUIESCENT; freed = true
    fi
#endif
  :: else
  fi;
gone:
  skip
}

active proctype watch() {
  byte peer = 1;
end:
#ifdef WITHOUT_WATCH
  false
#else
  do
  :: dead[1] && !lost[1] -> lost[1] = true; failed = true
#if RANKS == 3
  :: dead[2] && !lost[2] -> lost[2] = true; failed = true
#endif
  od
#endif
}
