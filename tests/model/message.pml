/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: Messages::post, takeHeads, answer and takeAnswers (native/core/message/message_moves.cpp), and what ends
 * them. Rank 0 receives, and each other rank sends it messages of two tags, all asynchronously. A message is copied to the
 * sender's block, or stays in the sender's buffer until it is answered. Rank 0 receives the last message first, by its
 * tag; it may withdraw a receive that has no message, and begin it again. A sender that waits may abort, and one rank may
 * die at any step. A lane has two slots, room for one answer, and one block.
 *
 * Checked: without a failure all ranks end; messages of one tag keep their order, and each arrives as it was sent; a
 * sender's buffer changes only when nobody reads it. Left out: doorbells (sleep.pml), and records of failures (record.pml). */

#if RANKS == 2
#define MESSAGES 3
#else
#define MESSAGES 2
#endif
#define DEPTH 2
#define SLOTS 2
#define LANE_CELLS (2 * SLOTS + MESSAGES + 5)
#define LANE(s) (((s) - 1) * LANE_CELLS)
#define NUMBER(s, m) (LANE(s) + 2 * ((m) % SLOTS))
#define PLACE(s, m) (LANE(s) + 2 * ((m) % SLOTS) + 1)
#define DATA(s, m) (LANE(s) + 2 * SLOTS + (m))
#define BLOCK(s) (LANE(s) + 2 * SLOTS + MESSAGES)
#define TAKEN(s) (BLOCK(s) + 1)
#define ANSWERED(s) (BLOCK(s) + 2)
#define ANSWER(s) (BLOCK(s) + 3)
#define HEARD(s) (BLOCK(s) + 4)
#define CELLS ((RANKS - 1) * LANE_CELLS)
#include "tso.pml"

#define CHANGED 100
#define IN_BLOCK 50
#define TAG(m) ((m) == MESSAGES - 1)

bool failed;
bool busy[RANKS];
bool lost[RANKS];
byte deaths;
bool freed[RANKS];

inline mayDie() {
  if
  :: deaths == 0 -> deaths = 1; lost[ME] = true; failed = true; goto gone
  :: true
  fi
}

inline send() {
  if
  :: !holdsBlock ->
    store(BLOCK(ME), sent + 1);
#ifndef UNBOUNDED_COPIES
    holdsBlock = true;
#endif
    place = IN_BLOCK
  :: true ->
    store(DATA(ME, sent), sent + 1);
    waits++;
    place = sent
  fi;
#ifdef HEAD_FIRST
  store(NUMBER(ME, sent), sent + 1);
  store(PLACE(ME, sent), place);
#else
  store(PLACE(ME, sent), place);
  store(NUMBER(ME, sent), sent + 1);
#endif
  places[sent] = place;
  sent++
}

#define MATCHES(m) (unmatched[(s - 1) * MESSAGES + (m)] && TAG(m) == (received[s] == 0))

/* Sets m to the message of s without a receive that the next receive matches, or to MESSAGES. */
inline search() {
#ifdef TAKES_THE_LAST
  m = MESSAGES;
  do
  :: m > 0 && !MATCHES(m - 1) -> m--
  :: else -> break
  od;
  m = (m == 0 -> MESSAGES : m - 1)
#else
  m = 0;
  do
  :: m < MESSAGES && !MATCHES(m) -> m++
  :: else -> break
  od
#endif
}

active [RANKS] proctype rank() {
  byte sent, waits, heard, place, m, s, next;
  byte places[MESSAGES];
  byte taken[RANKS], answered[RANKS], received[RANKS];
  bool unmatched[2 * MESSAGES];
  bool holdsBlock, posted, decided;
  byte withdrawals;

  busy[ME] = true;
  if
  :: ME > 0 ->
    do
    :: sent == MESSAGES && waits == 0 -> break
    :: failed -> break
#ifdef WITHOUT_TAKEN
    :: sent < MESSAGES && !failed ->
#else
    :: sent < MESSAGES && sent - SEEN(TAKEN(ME)) < SLOTS && !failed ->
#endif
      mayDie();
      send()
    :: waits > 0 && sent == MESSAGES && !decided && !failed ->
      decided = true;
      if
      :: failed = true /* an abort, or its deadline */
      :: true
      fi
    :: waits > 0 && SEEN(ANSWERED(ME)) > heard && !failed ->
      m = SEEN(ANSWER(ME)) - 1;
      if
      :: places[m] == IN_BLOCK -> holdsBlock = false
      :: else ->
        waits--;
        store(DATA(ME, m), CHANGED)
      fi;
      heard++;
      store(HEARD(ME), heard)
    od;
    busy[ME] = false;
    if
    :: failed ->
#ifndef FREED_AT_ONCE
      !busy[0] || lost[0];
#endif
      freed[ME] = true
    :: else
    fi
  :: else ->
    s = 1;
    do
    :: failed -> break
    :: s == RANKS -> break
    :: s < RANKS && received[s] == MESSAGES && !failed -> s++
    :: s < RANKS && received[s] < MESSAGES && !failed ->
      do
      :: failed -> break
      :: !posted && !failed ->
#ifndef WITHOUT_SEARCH
        search();
#else
        m = MESSAGES;
#endif
        if
        :: m < MESSAGES -> next = m + 1; break
        :: else -> posted = true
        fi
      :: posted && withdrawals == 0 && !failed -> posted = false; withdrawals = 1
      :: posted && SEEN(NUMBER(s, taken[s])) == taken[s] + 1 && !failed ->
        unmatched[(s - 1) * MESSAGES + taken[s]] = true;
        places[taken[s]] = SEEN(PLACE(s, taken[s]));
        taken[s]++;
        store(TAKEN(s), taken[s]);
        search();
        if
        :: m < MESSAGES -> next = m + 1; posted = false; break
        :: else
        fi
      od;
      if
      :: next == 0 -> break
      :: else
      fi;
      m = next - 1;
      next = 0;
      assert(m == (received[s] == 0 -> MESSAGES - 1 : received[s] - 1));
      unmatched[(s - 1) * MESSAGES + m] = false;
      mayDie();
#ifdef ANSWER_FIRST
      store(ANSWER(s), m + 1);
      answered[s]++;
      store(ANSWERED(s), answered[s]);
#endif
      if
      :: places[m] == IN_BLOCK -> place = SEEN(BLOCK(s))
      :: else ->
        assert(!freed[s]);
        place = SEEN(DATA(s, places[m]))
      fi;
      assert(place == m + 1);
      place = 0;
      received[s]++;
#ifndef ANSWER_FIRST
      do
      :: failed -> break
#ifdef WITHOUT_HEARD
      :: true ->
#else
      :: answered[s] - SEEN(HEARD(s)) < 1 ->
#endif
        answered[s]++;
#ifdef COUNT_FIRST
        store(ANSWERED(s), answered[s]);
        store(ANSWER(s), m + 1);
#else
        store(ANSWER(s), m + 1);
        store(ANSWERED(s), answered[s]);
#endif
        break
      od
#endif
    od;
    busy[ME] = false
  fi;
gone:
  skip
}
