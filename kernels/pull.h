// SPDX-License-Identifier: Apache-2.0
// What ranks read of one another in each collective where they can't write one another's memory:
// every rank writes its own output alone.
//
// args     those of the collective
// phases   one, but for all-reduce: each rank folds its share of all inputs into its own output,
//          then reads the others' shares from their outputs; and for packed all-to-all-v, which
//          lays its parts out first. native/comm/pulling.h runs them.
// signals  ENTER of every rank before inputs are read; DONE of every rank before the next phase,
//          and before return
// order    reductions: canonical, left fold in ascending rank. In place: what a rank overwrites of
//          its input is read by itself alone, or was read in the phase before.
#pragma once

#include "kernels/all_to_all_v.h"

namespace windlass {

constexpr PullPhase kPullsSame = {false, false, false, false};
constexpr PullPhase kPullsApart = {false, true, false, false};
constexpr PullPhase kPullsColumns = {false, false, false, true};
constexpr PullPhase kPullsOutputs = {false, false, true, false};
constexpr PullPhase kFoldsSame = {true, false, false, false};
constexpr PullPhase kFoldsApart = {true, true, false, false};
constexpr Pulled kPullsNothing = {0, 0, 0};

struct PullAllToAll {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {to * launch.bytes, from * launch.bytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

struct PullBroadcast {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    if (from != launch.root || launch.of(to).out.isNone()) return kPullsNothing;
    return {0, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

struct PullAllGather {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    return {0, from * launch.bytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

struct PullAllGatherColumns {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    const uint64_t rowBytes = launch.bytes == 0 ? 0 : launch.bytes / launch.rows();
    return {0, from * rowBytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsColumns, {}}, pulled, nullptr};
};

struct PullReduceScatter {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    return {to * launch.bytes, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsApart, {}}, pulled, nullptr};
};

struct PullAllReduce {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t k) {
    if (k == 1 && from == to) return kPullsNothing;
    const Part share = Part{0, launch.bytes}.piece(k == 0 ? to : from, launch.ranks);
    return {share.start, share.start, share.bytes};
  }
  static constexpr PullForm kForm = {2, {kFoldsApart, kPullsOutputs}, pulled, nullptr};
};

struct PullReduce {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    return {0, 0, to == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kFoldsSame, {}}, pulled, nullptr};
};

struct PullScatter {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {to * launch.bytes, 0, from == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

struct PullGather {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    return {0, from * launch.bytes, to == launch.root ? launch.bytes : 0};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

struct PullAllToAllV {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t) {
    const Part part = launch.parts(from).in(to);
    return {part.start, launch.parts(to).out(from).start, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsApart, {}}, pulled, nullptr};
};

struct PullAllToAllVPacked {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t to, uint32_t k) {
    const bool fits = TTEST(comm::Signal(&launch.parts(to).refused), 0, comm::WaitCmp::EQ);
    return k == 0 || !fits ? kPullsNothing : PullAllToAllV::pulled(launch, from, to, k);
  }
  static constexpr PullForm kForm = {
      2, {kPullsApart, kPullsApart}, pulled, AllToAllVPacked::layOut};
};

struct PullAllGatherV {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    const Part part = launch.parts(from).out(from);
    return {0, part.start, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsSame, {}}, pulled, nullptr};
};

struct PullReduceScatterV {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    const Part part = launch.parts(to).in(to);
    return {part.start, 0, part.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsApart, {}}, pulled, nullptr};
};

// Kernel K, and how its collective runs where ranks can't write one another's memory.
template <class K, class P>
struct Across : K {
  static constexpr const PullForm& kPull = P::kForm;
};

}  // namespace windlass
