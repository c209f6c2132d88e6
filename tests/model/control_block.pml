/* SPDX-License-Identifier: Apache-2.0 */
/* ENTER and DONE of native/comm/control_block.h, as Comm::publishEntry, awaitEntry, agrees and finishPhase
 * use them. Sequences start at 1, stay small and do not wrap, so that reached(seen, want) is seen >= want.
 * What an ENTER states beside its sequence (descriptor, addresses, a staged input) is one cell that holds
 * the sequence it was stated for: a rank that reads any other there would report a Mismatch, or use
 * another operation's addresses or input. DONE counts operations, as every kernel here has one phase. */

#ifdef WITHOUT_PARITY
#define SLOT(s) 0
#else
#define SLOT(s) ((s) & 1)
#endif
#define STATED(rank, s) (2 * (rank) + SLOT(s))
#define ENTER(rank, s) (2 * RANKS + 2 * (rank) + SLOT(s))
#define DONE(rank) (4 * RANKS + (rank))
#define CONTROL_CELLS (5 * RANKS)

#include "tso.pml"

#define AFTER(rank) (((rank) + 1) % RANKS)

inline publishEntry(s) {
#ifdef SEQUENCE_FIRST
  store(ENTER(ME, s), s);
  store(STATED(ME, s), s)
#else
  store(STATED(ME, s), s);
  store(ENTER(ME, s), s)
#endif
}

inline awaitEntry(peer, s) {
  SEEN(ENTER(peer, s)) >= s;
  assert(SEEN(STATED(peer, s)) == s)
}
