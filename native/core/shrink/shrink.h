// SPDX-License-Identifier: Apache-2.0
// Makes a new communicator of the live ranks of a failed one. They agree in the failed one's
// control block, which all of them still map:
//
//  - Each rank states in its own word that it joined the Agreement's current round. A rank that
//    died, closed or gave up is not awaited. When all others have joined, or a deadline has passed,
//    the lowest joined rank makes the new memory, lists the joined ranks, and proposes it. If it
//    fails to, the next rank does.
//  - The listed ranks open the memory and state that they hold it. When all hold it, any rank that
//    sees this sets the word to kAgreed. Then they have the new communicator, and no other rank
//    gets a handle.
//  - A listed rank may die, close, give up or take too long before that. Then any rank that sees it
//    opens the next round, which all join again.
//
// Each host has such a word and such a block. Ranks on several hosts send one another their own
// words and their host's word, repeatedly while the failed communicator is open:
//
//  - The host on which a proposal was made decides on it. Its ranks change their host's word as
//    above, by the messages that they received from the other members. Ranks of other hosts copy
//    its word: the proposal, the next round, or the agreement, which any rank's word can report.
//    Only if that host is gone or silent for too long do they open the next round themselves. If
//    two proposals of a round share a member, at most one succeeds, because the member follows one.
//  - The proposal is a note with the members. On each host the first member makes the memory and
//    states its file in its host's word. All open it, and state so in a note with the name of their
//    process's wire. After all notes, they connect and state that they hold it.
//  - A second failure can make a rank that holds the new communicator continue without it. The rank
//    ends it for those who agreed. They have a new communicator that has failed, and it names the
//    rank that left.
//
// Hosts that are cut off from one another cannot agree on the survivors: each side continues by
// itself. A host that was suspended for so long that the others lost it, and that finds none of
// them, is left out.
//
// A rank that the agreement left out at most maps the new memory while it reads the list, and never
// writes it. Its late writes go to the old block, which no rank reads any more.
#pragma once

#include "native/core/comm.h"

namespace windlass {

// *group and *rank: the new communicator, and this rank's number in it.
Code shrink(Comm& comm, int64_t deadlineNs, std::shared_ptr<Group>* group, uint32_t* rank,
            wl_error_t* error);

}  // namespace windlass
