// SPDX-License-Identifier: Apache-2.0
// A new communicator of the ranks of a failed one that live. They agree in the failed one's control
// block, which all of them still map:
//
//  - Each says in its own word that it came, in the round that the Agreement is in. Once all have
//    that neither died nor closed nor gave up, or its deadline has passed, the lowest that came
//    makes the memory of the new one, which lists those that came, and proposes it. Where it
//    doesn't, the next one does.
//  - Those listed open the memory, and say that they hold it. Whoever sees that all do agrees: they
//    have the new one, and nobody else gets a handle of it.
//  - Where one of those listed dies, closes or gives up before, or takes too long, whoever sees it
//    opens the next round, in which all have to come again.
//
// Over hosts each host has such a word and such a block, and ranks tell one another what they say
// and in which state their host's word was, again and again while the failed one is open:
//
//  - What one proposes, its host decides: its ranks move their word as above, by what they have
//    heard from the other members. Ranks of other hosts move theirs to what they hear from there:
//    to the proposal, to the next round, to agreement, of which any rank's word will do. Only where
//    that host is gone, or says nothing for too long, do they open the next round by themselves. Of
//    two proposals in one round that share a member one at most comes about: it follows one.
//  - The proposal is a note with the members. On each host the first of them makes the memory
//    there, and tells its file in its host's word; all open it, and say so in a note with the name
//    of their process's wire. Once all have, they connect, and say that they hold it.
//  - Who held one and goes on without it, as it can where a second failure comes in between, ends
//    it for those who agreed on it: they have a new one that has failed, and says who left it.
//
// Hosts that are cut off from one another can't agree on who is left: each side goes on by itself.
// A host that stood still for so long that others lose it, and finds none of them, is left out.
//
// A rank that agreement left out maps the new one's memory while it looks at the list at most, and
// writes nothing there: what it writes late lands in the old one's, which nobody reads any more.
#pragma once

#include "native/core/comm.h"

namespace windlass {

// *group and *rank: the new communicator, and this rank there.
Code shrink(Comm& comm, int64_t deadlineNs, std::shared_ptr<Group>* group, uint32_t* rank,
            wl_error_t* error);

}  // namespace windlass
