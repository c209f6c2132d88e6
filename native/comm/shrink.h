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
// A rank that agreement left out maps the new one's memory while it looks at the list at most, and
// writes nothing there: what it writes late lands in the old one's, which nobody reads any more.
#pragma once

#include "native/comm/comm.h"

namespace windlass {

// *group and *rank: the new communicator, and this rank there.
Code shrink(Comm& comm, int64_t deadlineNs, std::shared_ptr<Group>* group, uint32_t* rank,
            wl_error_t* error);

}  // namespace windlass
