// SPDX-License-Identifier: Apache-2.0
// Scatter: part r of the root's input becomes rank r's output.
// Gather: rank s's input becomes part s of the root's output.
//
// args     scatter: in   ranks x bytes, the root's
//                   out  bytes, every rank's; the root's may be its part of in
//          gather:  in   bytes, every rank's; the root's may be its part of out
//                   out  ranks x bytes, the root's
// phases   one. scatter: TGET of a piece of the rank's part
//               gather:  TPUT of a piece into the root's output
// signals  ENTER of the root before its memory is accessed; DONE of every rank before the root
//          returns
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/bytes.h"
#include "kernels/items.h"
#include "kernels/pull.h"
#include "windlass/kernel.h"

namespace windlass {
namespace detail {

// Items and signals of both operations. Move states the rank on each side.
template <class Move>
struct RootedItems : Items {
  WL_CORE static void plan(Launch& launch) { launch.cut(uint64_t{64} << 10, 256); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return rank == launch.root ? kNobody : launch.root;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const uint64_t part = rank * launch.bytes + launch.pieceStart(block);
    Move::move(launch, rank, part, launch.pieceStart(block), launch.pieceLength(block));
  }
  WL_CORE static uint32_t leavesAfter(const Launch& launch, uint32_t rank) {
    return rank == launch.root ? kEveryRank : kNobody;
  }
};

}  // namespace detail

struct Scatter : detail::RootedItems<Scatter> {
  WL_CORE static void move(const Launch& launch, uint32_t rank, uint64_t part, uint64_t start,
                           uint64_t length) {
    const uint8_t* in = launch.in(launch.root) + part;
    uint8_t* out = launch.out(rank) + start;
    get({out, in, length});
  }
};

struct Gather : detail::RootedItems<Gather> {
  WL_CORE static void move(const Launch& launch, uint32_t rank, uint64_t part, uint64_t start,
                           uint64_t length) {
    const uint8_t* in = launch.in(rank) + start;
    uint8_t* out = launch.out(launch.root) + part;
    put({out, in, length});
  }
};

// Across processes; see kernels/pull.h.
struct ScatterReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {to * launch.bytes, 0, from == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

struct GatherReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {0, from * launch.bytes, to == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

}  // namespace windlass
