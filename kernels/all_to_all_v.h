// SPDX-License-Identifier: Apache-2.0
// All-to-all of parts that differ in size: part d of rank r's input becomes part r of rank d's
// output.
//
// args     in   read at the parts aux->in
//          out  written at the parts aux->out, which do not overlap; no overlap with in
//          aux  PartTable
// phases   given: one: TPUT of a piece of input part d straight into the output of peer d
//          packed: two. Each rank lays out its output in ascending rank, from the inputs' parts.
//          Then they move as in given. If a rank has too little room, nothing moves.
// signals  given: ENTER of the peer before its output is written, and with it both sides' bytes
//          are compared
//          packed: ENTER of every rank before the output is laid out, and that phase of every rank
//          before any output is written
//          both: DONE of every rank before return, since they write this rank's output
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/peer_items.h"
#include "kernels/pull.h"

namespace windlass {

struct AllToAllV : PartItems<uint64_t{256} << 10> {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint32_t to = peer(launch, rank, block);
    const uint32_t count = pieces(launch, rank);
    const uint32_t index = piece(launch, block);
    const Part from = launch.parts(rank).in(to).piece(index, count);
    const Part into = launch.parts(to).out(rank).piece(index, count);
    const auto* in = launch.in(rank);
    auto* out = launch.out(to);
    put({out + into.start, in + from.start, from.bytes});
  }
};

struct AllToAllVPacked : AllToAllV {
  WL_CORE static constexpr uint32_t phases(const Launch&) { return 2; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) {
    return kEveryRank;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    if (k == 0) {
      if (block == 0) layOut(launch, rank);
    } else if (fits(launch, rank)) {
      AllToAllV::phase(launch, rank, block, k);
    }
  }
  WL_CORE static bool fits(const Launch& launch, uint32_t rank) {
    comm::Signal refused(&launch.parts(rank).refused);
    const bool all = comm::TTEST(refused, 0, comm::WaitCmp::EQ);
    pipe_barrier(PIPE_ALL);
    return all;
  }
  WL_CORE static void layOut(const Launch& launch, uint32_t rank) {
    PartTable& own = launch.parts(rank);
    own.needed = 0;
    for (uint32_t from = 0; from < launch.ranks; ++from) {
      own.out(from) = {own.needed, launch.parts(from).in(rank).bytes};
      own.needed += own.out(from).bytes;
    }
    if (own.needed <= own.room) return;
    for (uint32_t other = 0; other < launch.ranks; ++other) {
      comm::Signal refused(&launch.parts(other).refused);
      comm::TNOTIFY(refused, 1, comm::NotifyOp::AtomicAdd);
    }
  }
};

// Across processes; see kernels/pull.h.
struct AllToAllVReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    const Part part = launch.parts(from).in(to);
    return {part.start, launch.parts(to).out(from).start, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

struct AllToAllVPackedReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t k) {
    // Moves only after all ranks have laid out their outputs.
    const bool moves = k == 1 && launch.parts(to).refused == 0;
    return moves ? AllToAllVReads::pulled(launch, from, to, k) : kPullsNothing;
  }
  static constexpr PullForm kForm = {
      2, {kPullsApart, kPullsApart}, pulled, AllToAllVPacked::layOut};
};

}  // namespace windlass
