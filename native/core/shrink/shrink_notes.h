// SPDX-License-Identifier: Apache-2.0
// What ranks of several hosts tell of what a shrink proposes: who its members are, and by what
// names their processes' wires are found. A note may come late, and again; what of it is not whole,
// or of another proposal, is none.
#pragma once

#include <vector>

#include "native/core/control_block.h"

namespace windlass {

// `maker`'s of that round. `name`: as ShrinkNote has it, kMostNameBytes of them at most.
void writeNote(const Agreement& proposed, const std::vector<uint32_t>& members,
               const std::vector<unsigned char>& name, ShrinkNote* note);

// Whether it is of that proposal. *members: in ascending order, each below `ranks`. Throws
// std::bad_alloc.
bool readNote(const ShrinkNote& note, const Agreement& proposed, uint32_t ranks,
              std::vector<uint32_t>* members, std::vector<unsigned char>* name);

}  // namespace windlass
