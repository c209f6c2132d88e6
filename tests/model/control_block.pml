/* SPDX-License-Identifier: Apache-2.0 */
/* ENTER and DONE of native/core/control_block.h, as Operation::publishEntry, agree and finishPhase, and Waits::awaitEntry use
 * them. ENTER states the last two bits of its sequence, the fewest by which reached(seen, want), which compares
 * as they wrap, tells the sequence that a slot is to hold from the one before it there. DONE states the whole sequence
 * and is compared as a number; it counts operations, as every kernel here has one phase. What an ENTER states
 * beside its sequence (descriptor, addresses, a staged input) is one cell that holds the sequence it was stated
 * for: a rank that reads any other there would report a Mismatch, or use another operation's addresses or input. */

#ifdef WITHOUT_PARITY
#define SLOT(s) 0
#else
#define SLOT(s) ((s) & 1)
#endif
#ifdef NARROW_SEQUENCE
#define BITS 1
#else
#define BITS 2
#endif
#define LOW(s) ((s) & ((1 << BITS) - 1))
#define REACHED(seen, want) (LOW((seen) - (want)) < 1 << (BITS - 1))
#define ENTERED(rank, s) REACHED(SEEN(ENTER(rank, s)), s)

#define STATED(rank, s) (2 * (rank) + SLOT(s))
#define ENTER(rank, s) (2 * RANKS + 2 * (rank) + SLOT(s))
#define DONE(rank) (4 * RANKS + (rank))
#define CONTROL_CELLS (5 * RANKS)

/* NARROW_DONE: a DONE as narrow as an ENTER. */
#ifdef NARROW_DONE
#define DONE_WORD(s) LOW(s)
#define IS_DONE(rank, s) REACHED(SEEN(DONE(rank)), s)
#else
#define DONE_WORD(s) (s)
#define IS_DONE(rank, s) (SEEN(DONE(rank)) >= s)
#endif

#include "tso.pml"

#define AFTER(rank) (((rank) + 1) % RANKS)

inline publishEntry(s) {
#ifdef SEQUENCE_FIRST
  store(ENTER(ME, s), LOW(s));
  store(STATED(ME, s), s)
#else
  store(STATED(ME, s), s);
  store(ENTER(ME, s), LOW(s))
#endif
}

inline awaitEntry(peer, s) {
  ENTERED(peer, s);
  assert(SEEN(STATED(peer, s)) == s)
}
