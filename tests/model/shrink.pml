/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a failed communicator agree on the next one: native/core/shrink/shrink.cpp. One rank, any, may die at any
 * step; its death shows to the others when a watch has seen it. Deadlines, turns and limits pass at any time: a rank
 * may propose as soon as a round is open, and abandon what is proposed as soon as it is. The last may stay
 * away (it is stopped, and comes back at the end), and the first give up at any step, as where it is closed.
 *
 * Checked: each living rank ends; those that get the new communicator get the same one, hold its memory and are its
 * members; each of its members got it or died; a rank that gave up, or was left out, is none. Steps are seq_cst
 * operations in the code, and one at a time here. Rounds end with the last: who is in it then gives up. */

/* Three ranks have more states than memory where a second round is proposed in. */
#if RANKS == 3
#define ROUNDS 2
#else
#define ROUNDS 3
#endif
#define OPEN 0
#define PROPOSED 1
#define AGREED 2

/* The Agreement, one word. */
byte stage, round, maker;
#define IS(s, r, m) (stage == (s) && round == (r) && maker == (m))

#define MAY_GIVE_UP (ME == 0)
#define MAY_STOP (ME == RANKS - 1)

/* What each rank says: 0, CAME, HOLDS or GAVE_UP. */
byte said[RANKS];
#define CAME(r) (2 * (r) + 2)
#define HOLDS(r) (2 * (r) + 3)
#define GAVE_UP 255

/* The memory that each rank proposes in each round: its members, one bit each, how many, and how many hold it. */
byte members[ROUNDS * RANKS];
byte size[ROUNDS * RANKS];
byte holding[ROUNDS * RANKS];
#ifdef ONE_COUNT
#define COUNT 0
#else
#define COUNT (r * RANKS + m)
#endif

bool dead[RANKS];
bool lost[RANKS];
bool died;

/* Which one the first rank to have the new communicator has. */
byte got;

#define IS_GONE(rank) (lost[rank] || said[rank] == GAVE_UP)

#define MAY_DIE \
  if \
  :: !died -> died = true; dead[ME] = true; goto gone \
  :: true \
  fi

inline abandon() {
#ifdef WITHOUT_COMPARE
  atomic { stage = OPEN; round = r + 1; maker = 0 }
#else
  atomic {
    if
    :: IS(PROPOSED, r, m) -> stage = OPEN; round = r + 1; maker = 0
    :: else
    fi
  }
#endif
}

active [RANKS] proctype rank() {
  byte s, r, m, peer;
  byte mine = 255; /* the round that it is in; 255: none yet */
  bool isOpen, holds;
#define ME _pid

  if
  :: MAY_STOP ->
endStopped:
    stage == AGREED
  :: true
  fi;
  do
  :: atomic { s = stage; r = round; m = maker };
    if
    :: s == AGREED -> break
    :: else
    fi;
    if
    :: r != mine ->
      mine = r;
      isOpen = false;
      holds = false;
      said[ME] = CAME(r)
    :: else
    fi;
    MAY_DIE;
    if
    :: MAY_GIVE_UP || (r == ROUNDS - 1 && s == OPEN) -> goto givesUp
    :: s == OPEN && r < ROUNDS - 1 ->
      d_step {
        members[r * RANKS + ME] = 0;
        size[r * RANKS + ME] = 0;
        peer = 0;
        do
        :: peer == RANKS -> break
        :: else ->
          if
          :: !IS_GONE(peer) && said[peer] == CAME(r) ->
            members[r * RANKS + ME] = members[r * RANKS + ME] | (1 << peer);
            size[r * RANKS + ME]++
          :: else
          fi;
          peer++
        od;
        peer = 0
      };
      MAY_DIE;
      atomic {
        if
        :: IS(OPEN, r, 0) ->
#ifdef AGREED_AT_ONCE
          stage = AGREED;
#else
          stage = PROPOSED;
#endif
          maker = ME;
          isOpen = true
        :: else ->
          /* Nobody ever sees it. */
          members[r * RANKS + ME] = 0;
          size[r * RANKS + ME] = 0
        fi
      }
    :: s == OPEN && !IS(s, r, m)
    :: s == PROPOSED ->
      if
      :: !isOpen && dead[m] -> abandon()
      :: !isOpen && !dead[m] ->
        isOpen = true;
        if
        :: IS(s, r, m)
        :: else -> isOpen = false
        fi
      :: isOpen && !holds && (members[r * RANKS + m] & (1 << ME)) ->
        holds = true;
        said[ME] = HOLDS(r);
        MAY_DIE;
        holding[COUNT]++
      :: isOpen && (holds || !(members[r * RANKS + m] & (1 << ME))) ->
        if
        :: holding[COUNT] == size[r * RANKS + m] ->
          atomic {
            if
            :: IS(s, r, m) -> stage = AGREED
            :: else
            fi
          }
        :: abandon()
        :: !IS(s, r, m)
        fi
      fi
    fi;
    d_step { s = OPEN; r = 0; m = 0 }
  od;
  goto over;

givesUp:
  do
  :: atomic { s = stage; r = round; m = maker };
    if
#ifndef GIVES_UP_HOLDING
    :: holds && r == mine && s == AGREED -> goto over
    :: holds && r == mine && s != AGREED -> abandon()
#endif
    :: else -> said[ME] = GAVE_UP; goto gone
    fi
  od;

over:
  skip;
  d_step {
    r = round;
    m = maker;
    if
    :: said[ME] == HOLDS(r) ->
      assert(isOpen && (members[r * RANKS + m] & (1 << ME)));
      assert(got == 0 || got == r * RANKS + m + 1);
      got = r * RANKS + m + 1;
      peer = 0;
      do
      :: peer == RANKS -> break
      :: else ->
        assert(!(members[r * RANKS + m] & (1 << peer)) || said[peer] == HOLDS(r));
        peer++
      od
    :: else -> assert(!(members[r * RANKS + m] & (1 << ME)))
    fi
  };
gone:
  skip;
  d_step { s = OPEN; r = 0; m = 0; peer = 0; mine = 0; isOpen = false; holds = false }
}

active proctype watch() {
  byte peer;
end:
  do
  :: dead[0] && !lost[0] -> lost[0] = true
  :: dead[1] && !lost[1] -> lost[1] = true
#if RANKS == 3
  :: dead[2] && !lost[2] -> lost[2] = true
#endif
  od
}
