// SPDX-License-Identifier: Apache-2.0
// How collectives run where ranks can't write one another's memory: every rank writes its own
// output alone. What it reads of the others stands beside each kernel: XReads beside X.
//
// args     those of the collective
// phases   one, but for all-reduce: each rank folds its share of all inputs into its own output,
//          then reads the others' shares from their outputs; and for packed all-to-all-v, which
//          lays its parts out first. native/peer/pulling.h runs them.
// signals  ENTER of every rank before inputs are read; DONE of every rank before the next phase,
//          and before return. Where ranks reach nothing of one another's but stages, what is filled
//          and taken of those takes the place of DONE, and a rank may fill its half before ENTER
// order    reductions: canonical, left fold in ascending rank. In place: what a rank overwrites of
//          its input is read by itself alone, or was read in the phase before.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

constexpr PullPhase kPullsSame = {false, false, false, false};
constexpr PullPhase kPullsApart = {false, true, false, false};
constexpr PullPhase kPullsColumns = {false, false, false, true};
constexpr PullPhase kPullsOutputs = {false, false, true, false};
constexpr PullPhase kFoldsSame = {true, false, false, false};
constexpr PullPhase kFoldsApart = {true, true, false, false};
constexpr Pulled kPullsNothing = {0, 0, 0};

// Kernel K, and how its collective runs where ranks can't write one another's memory.
template <class K, class P>
struct Across : K {
  static constexpr const PullForm& kPull = P::kForm;
};

}  // namespace windlass
