/* SPDX-License-Identifier: Apache-2.0 */
/* The sleep of Waiter::waitSlow and sleepOnce (native/core/rank/waiter.cpp), and Group::wakeSleepers
 * (native/core/group.cpp). The ring word only ever grows and is only compared with what its rank saw last,
 * so it is one bit here: whether it was rung since. The kernel compares it and queues the sleeper in one step.
 * A sleep has no time limit, so that a lost wake is a process that blocks for ever. Spins and yields are left
 * out: they only look.
 *
 * The includer defines BELL_CELLS, the first of RANKS + 1 cells, and declares in rank(): byte bell. */

#define SLEEPERS BELL_CELLS
#define SLEEPING(rank) (BELL_CELLS + 1 + (rank))

bool rung[RANKS];
bool queued[RANKS];

/* The seq_cst read-modify-write that stands between stores and a look at who sleeps: of state.awaited in
 * Waiter::announce, of state.busy in Gate::leave. */
inline storeLoad() {
#ifdef WITHOUT_STORELOAD
  skip
#else
  DRAINED
#endif
}

inline wakeSleepers() {
  if
  :: SEEN(SLEEPERS) == 0
  :: else ->
    bell = 0;
    do
    :: bell < RANKS ->
      if
      :: SEEN(SLEEPING(bell)) == 0
      :: else ->
        d_step {
          DRAINED ->
#ifndef WITHOUT_RING
          rung[bell] = true;
#endif
          queued[bell] = false
        }
      fi;
      bell++
    :: else -> break
    od;
    bell = 0
  fi
}

/* Between lieDown and getUp a rank takes its second look, and sleeps unless that finds an end. */
inline lieDown() {
#ifndef LATE_SEEN
  rung[ME] = false;
#endif
  atomic { DRAINED -> memory[SLEEPING(ME)] = 1 };
  atomic { DRAINED -> memory[SLEEPERS]++ }
}

inline sleep() {
#ifdef LATE_SEEN
  rung[ME] = false;
#endif
  d_step { queued[ME] = !rung[ME] };
  !queued[ME]
}

inline getUp() {
  atomic { DRAINED -> memory[SLEEPERS]-- };
  atomic { DRAINED -> memory[SLEEPING(ME)] = 0 }
}
