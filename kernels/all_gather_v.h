// SPDX-License-Identifier: Apache-2.0
// All-gather of parts that differ in size: the input of rank s becomes part s of every rank's
// output.
//
// args     in   as long as the rank's part; may be that part of out (in place)
//          out  the parts of all ranks
//          aux  PartTable: out, the same on every rank
// phases   one: TGET of a piece of each rank's input. Items are (peer, piece): nearest higher rank
//          first, the rank itself last.
// signals  ENTER of the peer before its input is read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input rides with ENTER; no DONE.
// order    a rank's ENTER releases its input; a reader's DONE acknowledges that it has been read
#pragma once

#include "kernels/part_items.h"

namespace windlass {

struct AllGatherV : PartItems {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t from = peer(launch, rank, block);
    const uint32_t count = pieces(launch, rank);
    const Part whole = launch.parts(rank).out[from];
    const Part part = whole.piece(block % count, count);
    if (part.bytes == 0) return;
    const uint8_t* in =
        static_cast<const uint8_t*>(launch.of(from).in) + (part.start - whole.start);
    uint8_t* out = static_cast<uint8_t*>(launch.of(rank).out) + part.start;
    if (in == out) return;
    ByteTile tile;
    TGET(row(out, part.bytes), row(in, part.bytes), tile);
  }
};

struct AllGatherVEager : AllGatherV {
  static constexpr bool kStaged = true;
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
};

}  // namespace windlass
