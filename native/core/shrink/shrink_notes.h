// SPDX-License-Identifier: Apache-2.0
// In a shrink, ranks propose a new communicator. These notes carry a proposal to other hosts: its
// members, and the network addresses of their processes. A note may arrive late or repeatedly. An
// incomplete note, or a note of another proposal, is ignored.
#pragma once

#include <vector>

#include "native/core/control_block.h"

namespace windlass {

// Writes the note of `proposed`. `name` is the wire name of ShrinkNote, at most kMostNameBytes.
void writeNote(const Agreement& proposed, const std::vector<uint32_t>& members,
               const std::vector<unsigned char>& name, ShrinkNote* note);

// Returns true if the note belongs to `proposed`. *members is in ascending order, each below
// `ranks`. Throws std::bad_alloc.
bool readNote(const ShrinkNote& note, const Agreement& proposed, uint32_t ranks,
              std::vector<uint32_t>* members, std::vector<unsigned char>* name);

}  // namespace windlass
