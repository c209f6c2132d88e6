// SPDX-License-Identifier: Apache-2.0
// All-gather of parts that differ in size: the input of rank s becomes part s of every rank's
// output.
//
// args     in   as long as the rank's part; may be that part of out (in place)
//          out  the parts of all ranks
//          aux  PartTable: out, the same on every rank
// phases   one: TPUT of a piece of the rank's input into the output of every rank, one after
//          the other, so that it is read from memory once
//          eager:  TGET of each rank's input from the copy that travels with ENTER
// signals  ENTER of the peer before its output is written; DONE of every rank before return, since
//          they write this rank's output. Eager: ENTER of the peer before its copy is read; no
//          DONE.
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/all_gather.h"
#include "kernels/pull.h"

namespace windlass {

struct AllGatherV : PartItems<kGatheredPiece> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    put(run(launch, rank, peer(launch, rank, block), piece(launch, block), pieces(launch, rank)));
  }
  WL_CORE static Run run(const Launch& launch, uint32_t from, uint32_t to, uint32_t piece,
                         uint32_t count) {
    const Part whole = launch.parts(from).out(from);
    const Part part = whole.piece(piece, count);
    const auto* in = launch.in(from) + (part.start - whole.start);
    auto* out = launch.out(to) + part.start;
    return {out, in, part.bytes};
  }
};

struct AllGatherVPull : AllGatherV {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    get(run(launch, peer(launch, rank, block), rank, piece(launch, block), pieces(launch, rank)));
  }
};

// Across processes; see kernels/pull.h.
struct AllGatherVReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    const Part part = launch.parts(from).out(from);
    return {0, part.start, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

}  // namespace windlass
