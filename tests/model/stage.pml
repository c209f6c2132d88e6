/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that hand one another their inputs by stages of two halves: Pulling::runRounds (native/peer/pull_rounds.cpp).
 * A rank fills a half of its stage once all have read what it held two rounds ago, says so, and reads the halves
 * of all others; rank 0 reads none, as the root of a broadcast, and so learns of no rank by what it reads. FarItems::serve and takeBox are the same between an owner and one reader. A half is one cell,
 * which holds the round it was filled for.
 *
 * Checked: no deadlock; what a rank reads is of its round. Left out: ENTER and DONE, behind which the first round
 * may be filled and the next operation may begin, so that rounds follow one another as where there are none; rounds in
 * which a rank fills or reads nothing. */

#define ROUNDS 5
#define DEPTH 4
#ifdef ONE_HALF
#define HALF(rank, r) (2 * (rank))
#else
#define HALF(rank, r) (2 * (rank) + ((r) & 1))
#endif
#define FILLED(rank) (2 * RANKS + (rank))
#define TAKEN(rank) (3 * RANKS + (rank))
#define CELLS (4 * RANKS)
#include "tso.pml"

#define AFTER(rank) (((rank) + 1) % RANKS)

active [RANKS] proctype rank() {
  byte r = 0;
  byte peer;
  do
  :: r < ROUNDS ->
    peer = AFTER(ME);
    do
    :: peer != ME ->
#ifndef WITHOUT_TAKEN
      SEEN(TAKEN(peer)) + 1 >= r;
#endif
      peer = AFTER(peer)
    :: else -> break
    od;
#ifdef FILLED_FIRST
    store(FILLED(ME), r + 1);
    store(HALF(ME, r), r + 1);
#else
    store(HALF(ME, r), r + 1);
    store(FILLED(ME), r + 1);
#endif
#ifdef TAKEN_FIRST
    store(TAKEN(ME), r + 1);
#endif
    peer = (ME == 0 -> ME : AFTER(ME));
    do
    :: peer != ME ->
#ifndef WITHOUT_FILLED
      SEEN(FILLED(peer)) > r;
#endif
      assert(SEEN(HALF(peer, r)) == r + 1);
      peer = AFTER(peer)
    :: else -> break
    od;
#ifndef TAKEN_FIRST
    store(TAKEN(ME), r + 1);
#endif
    r++
  :: else -> break
  od
}
