// SPDX-License-Identifier: Apache-2.0
// Collectives for ranks that cannot write one another's memory: every rank writes only its own
// output. The struct XReads next to each kernel X states what a rank reads of the others.
//
// args     those of the collective
// phases   one, with two exceptions. All-reduce: each rank folds its share of all inputs into its
//          own output, then reads the others' shares from their outputs. Packed all-to-all-v lays
//          out its parts first. native/peer/pulling.h runs them.
// signals  ENTER of every rank before inputs are read; DONE of every rank before the next phase,
//          and before return. If ranks reach only one another's staging buffers, the filled and
//          taken counts replace DONE, and a rank may fill its half before ENTER
// order    reductions: canonical, left fold in ascending rank. In place: a rank overwrites only
//          input that no other rank reads, or that was read in the phase before.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

constexpr PullPhase kPullsSame = {false, false, false, false};
constexpr PullPhase kPullsApart = {false, true, false, false};
constexpr PullPhase kPullsColumns = {false, false, false, true};
constexpr PullPhase kPullsOutputs = {false, false, true, false};
constexpr PullPhase kFoldsSame = {true, false, false, false};
constexpr PullPhase kFoldsApart = {true, true, false, false};
constexpr PullPhase kFoldsColumns = {true, true, false, true};
constexpr Pulled kPullsNothing = {0, 0, 0};

// Kernel K, with the form of its collective if ranks cannot write one another's memory.
template <class K, class P>
struct Across : K {
  static constexpr const PullForm& kPull = P::kForm;
};

}  // namespace windlass
