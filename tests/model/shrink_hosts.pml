/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks of several hosts agree on the communicator that follows a failed one: native/core/shrink/shrink.h, over hosts. Each
 * rank is a host; what ranks of one host do beside that is in shrink.pml. A host sees of another what that one's words
 * were when it told them last: what was told arrives at any time, and is told again. One host, any, may die at any step,
 * and its loss shows to each other one at any time from then on. Limits pass at any time: a host may propose as soon as a
 * round is open, and whoever is in a proposal may begin anew. The first may give up at any step.
 *
 * Checked, once all have ended: who got a new communicator is a member of it, and each other member got the same one, died,
 * or ended it as it went on without it. Opening memory and wires is one step with holding them. Rounds end with the
 * last: who is in it then gives up. */

#define ROUNDS 2
#define ME _pid
#define OPEN 0
#define PROPOSED 1
#define AGREED 2

#define CAME(r) (2 * (r) + 2)
#define HOLDS(r) (2 * (r) + 3)
#define GAVE_UP 255

/* A host's word, and what its rank says; and what each host has heard of each. */
byte step[RANKS], round[RANKS], maker[RANKS], said[RANKS];
#define AT(from) (ME * RANKS + (from))
byte seenStep[RANKS * RANKS], seenRound[RANKS * RANKS], seenMaker[RANKS * RANKS], seenSaid[RANKS * RANKS];

/* Of what each rank proposes in each round: its members, and which of them ended it, one bit each. */
byte members[ROUNDS * RANKS];
byte forsaken[ROUNDS * RANKS];
#define PROPOSAL(r, m) ((r) * RANKS + (m))

bool dead[RANKS];
bool lost[RANKS * RANKS];
bool died;
byte got[RANKS]; /* PROPOSAL + 1; 0: none */
byte ended;

#define MAY_GIVE_UP (ME == 0)
#define IS_GONE(from) (lost[AT(from)] || seenSaid[AT(from)] == GAVE_UP)

inline move(s, r, m) {
  step[ME] = s;
  round[ME] = r;
  maker[ME] = m
}

inline forsake() {
#ifndef WITHOUT_FORSAKING
  if
  :: said[ME] == HOLDS(mine) -> forsaken[PROPOSAL(mine, from)] = forsaken[PROPOSAL(mine, from)] | (1 << ME)
  :: else
  fi
#else
  skip
#endif
}

/* What ME hears of one that it has not lost. */
inline hear() {
  seenStep[AT(peer)] = step[peer];
  seenRound[AT(peer)] = round[peer];
  seenMaker[AT(peer)] = maker[peer];
  seenSaid[AT(peer)] = said[peer]
}

active [RANKS] proctype host() {
  byte peer, from; /* `from`: the maker of what it holds */
  byte mine = 255; /* the round that it is in; 255: none yet */
  bool all;

  do
  :: step[ME] == AGREED -> break
  :: step[ME] != AGREED ->
    if
    :: !died -> died = true; dead[ME] = true; goto gone
    :: true
    fi;
    if
    :: round[ME] != mine ->
      /* Enters its word's round. */
      d_step {
        if
        :: mine != 255 -> forsake()
        :: else
        fi;
        mine = round[ME];
        said[ME] = CAME(mine)
      }
    :: MAY_GIVE_UP || (round[ME] == ROUNDS - 1 && step[ME] == OPEN) ->
      d_step {
        forsake();
        if
        :: step[ME] == PROPOSED && maker[ME] == ME -> move(OPEN, round[ME], 0)
        :: else
        fi;
        said[ME] = GAVE_UP
      };
      goto gone
    :: atomic {
        /* Hears of one, and follows it. */
        if
        :: peer = 0
        :: peer = 1
#if RANKS == 3
        :: peer = 2
#endif
        fi;
        if
        :: peer == ME || lost[AT(peer)]
        :: peer != ME && !lost[AT(peer)] ->
          hear();
          if
          :: seenStep[AT(peer)] == AGREED ->
            if
            :: step[ME] == OPEN || seenRound[AT(peer)] > round[ME] ||
               (seenRound[AT(peer)] == round[ME] && seenMaker[AT(peer)] == maker[ME]) ->
              move(AGREED, seenRound[AT(peer)], seenMaker[AT(peer)])
            :: else
            fi
          :: seenStep[AT(peer)] != AGREED && seenRound[AT(peer)] > round[ME] &&
             (step[ME] == OPEN || maker[ME] == peer) ->
            move(OPEN, seenRound[AT(peer)], 0)
          :: seenStep[AT(peer)] == PROPOSED && seenRound[AT(peer)] == round[ME] && step[ME] == OPEN &&
             seenMaker[AT(peer)] == peer ->
            move(PROPOSED, round[ME], peer)
          :: else
          fi
        fi;
        peer = 0
      }
    :: atomic {
        /* Sees that one is lost. */
        if
        :: dead[0] && !lost[AT(0)] -> lost[AT(0)] = true
        :: dead[1] && !lost[AT(1)] -> lost[AT(1)] = true
#if RANKS == 3
        :: dead[2] && !lost[AT(2)] -> lost[AT(2)] = true
#endif
        fi
      }
    :: step[ME] == OPEN && round[ME] < ROUNDS - 1 && round[ME] == mine ->
      d_step {
        from = PROPOSAL(mine, ME);
        members[from] = 1 << ME;
        peer = 0;
        do
        :: peer == RANKS -> break
        :: else ->
          if
          :: peer != ME && !IS_GONE(peer) && seenSaid[AT(peer)] == CAME(mine) -> members[from] = members[from] | (1 << peer)
          :: else
          fi;
          peer++
        od;
        peer = 0;
        from = 0;
#ifdef AGREED_AT_ONCE
        said[ME] = HOLDS(mine);
        move(AGREED, mine, ME)
#else
        move(PROPOSED, mine, ME)
#endif
      }
    :: step[ME] == PROPOSED && round[ME] == mine && said[ME] == CAME(mine) &&
       (members[PROPOSAL(mine, maker[ME])] & (1 << ME)) ->
      d_step { from = maker[ME]; said[ME] = HOLDS(mine) }
    :: step[ME] == PROPOSED && round[ME] == mine ->
      d_step {
        all = maker[ME] == ME && said[ME] == HOLDS(mine);
        peer = 0;
        do
        :: peer == RANKS -> break
        :: else ->
          if
          :: peer != ME && (members[PROPOSAL(mine, ME)] & (1 << peer)) ->
            all = all && !IS_GONE(peer) && seenSaid[AT(peer)] == HOLDS(mine) && seenStep[AT(peer)] == PROPOSED &&
                  seenRound[AT(peer)] == mine && seenMaker[AT(peer)] == ME
          :: else
          fi;
          peer++
        od;
        peer = 0
      };
      if
      :: all -> d_step { all = false; move(AGREED, mine, ME) }
      :: d_step { all = false; move(OPEN, mine + 1, 0) }
      fi
    fi
  od;
  skip;
  d_step {
    if
#ifdef OF_ANY_MAKER
    :: said[ME] == HOLDS(round[ME]) -> got[ME] = PROPOSAL(round[ME], maker[ME]) + 1
#else
    :: said[ME] == HOLDS(round[ME]) && from == maker[ME] -> got[ME] = PROPOSAL(round[ME], maker[ME]) + 1
#endif
    :: else -> if :: mine != 255 -> forsake() :: else fi
    fi
  };
gone:
  skip;
  d_step {
    ended++;
    if
    :: ended == RANKS ->
      peer = 0;
      do
      :: peer == RANKS -> break
      :: else ->
        if
        :: got[peer] != 0 ->
          assert(members[got[peer] - 1] & (1 << peer));
          from = 0;
          do
          :: from == RANKS -> break
          :: else ->
            assert(!(members[got[peer] - 1] & (1 << from)) || dead[from] || got[from] == got[peer] ||
                   (forsaken[got[peer] - 1] & (1 << from)));
            from++
          od
        :: else
        fi;
        peer++
      od
    :: else
    fi
  }
}
