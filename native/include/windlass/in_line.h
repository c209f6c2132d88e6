// SPDX-License-Identifier: Apache-2.0
// The in-line executor. It runs a kernel's phases in line, on one core of a rank of 1 to n.
//
// args     of the kernel. Every rank has entered, so its RankArgs can be read. In an operation on
//          streams, which ranks begin separately, they can be read after all ranks have begun.
// phases   of the kernel. A core runs blocks core, core + cores, ... of its rank, one phase after
//          the other.
// signals  a line for each core of each rank, in every rank's own memory. A core writes its number
//          of completed phases into all of its lines, and reads only its own rank's lines. An item
//          waits for its rank's other cores and for the ranks that `needs` names. A rank may leave
//          once `leavesAfter` is done.
// order    phase, pipe_barrier and dsb, then TNOTIFY; TTEST, pipe_barrier, then the next phase
#pragma once

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// Returns true if a word that only moves forward, by less than 2^30 at a time, has reached `want`.
// TTEST compares signed values. The upper bound is tested first, since the word may wrap between
// the two tests.
WL_CORE inline bool reachedInLine(comm::Signal& signal, uint32_t want) {
  const auto from = static_cast<int32_t>(want);
  const auto end = static_cast<int32_t>(want ^ 0x80000000u);
  if (from < 0) {
    return comm::TTEST(signal, end, comm::WaitCmp::LT) &&
           comm::TTEST(signal, from, comm::WaitCmp::GE);
  }
  return comm::TTEST(signal, from, comm::WaitCmp::GE) ||
         comm::TTEST(signal, end, comm::WaitCmp::LT);
}

// Waits for `count` lines with all threads of the core. The first line is `first`, and each is
// `apart` lines after the one before. Returns false after own.looks checks.
template <class Threads>
WL_CORE inline bool awaitTogether(const InLine& own, int32_t* first, uint32_t apart, uint32_t count,
                                  uint32_t phases) {
  constexpr uint32_t kStep = kCoreLineBytes / sizeof *first;
  uint32_t look = 0;
  while (!Threads::haveReached(first, apart * kStep, count, own.word(phases))) {
    if (++look == own.looks) return false;
    relax(own.sharesCores);
  }
  return true;
}

// Returns true if all cores of `peer` (a rank, kEveryRank or kNobody) have ended `phases` phases.
template <class Threads = CoreThreads>
WL_CORE inline bool awaitInLine(const Launch& launch, const InLine& own, uint32_t peer,
                                uint32_t phases) {
  const uint32_t first = peer == kEveryRank ? 0 : peer;
  const uint32_t last = peer == kEveryRank ? launch.ranks : peer + 1;
  if constexpr (Threads::kCount > 1) {
    const uint32_t count = peer == kNobody ? 0 : (last - first) * own.cores;
    const uint32_t apart = peer == kEveryRank ? 1 : launch.ranks;
    int32_t* const line = own.line(own.rank, first, 0, launch.ranks);
    if (!awaitTogether<Threads>(own, line, apart, count, phases)) return false;
  } else {
    for (uint32_t of = first; peer != kNobody && of < last; ++of) {
      for (uint32_t core = 0; core < own.cores; ++core) {
        comm::Signal line(own.line(own.rank, of, core, launch.ranks));
        uint32_t look = 0;
        while (!reachedInLine(line, own.word(phases))) {
          if (++look == own.looks) return false;
          relax(own.sharesCores);
        }
      }
    }
  }
  pipe_barrier(PIPE_ALL);
  return true;
}

template <class Threads = CoreThreads>
WL_CORE inline void tellInLine(const Launch& launch, const InLine& own, uint32_t phases) {
  if constexpr (Threads::kCount > 1) {
    const auto line = [&](uint32_t peer) {
      return own.line(peer, own.rank, own.core, launch.ranks);
    };
    Threads::notifyEach(launch.ranks, own.word(phases), line);
  } else {
    pipe_barrier(PIPE_ALL);
    dsb(DSB_DDR);
    for (uint32_t step = 1; step <= launch.ranks; ++step) {
      const uint32_t peer = (own.rank + step) % launch.ranks;
      comm::Signal line(own.line(peer, own.rank, own.core, launch.ranks));
      comm::TNOTIFY(line, static_cast<int32_t>(own.word(phases)), comm::NotifyOp::Set);
    }
  }
}

// Waits until all cores of all ranks have begun the operation. Resumable, like runInLine().
WL_CORE inline bool awaitAllInLine(const Launch& launch, const InLine& own, Position& at) {
  if (!at.told) tellInLine(launch, own, 0);
  at.told = true;
  if (!at.allBegan) at.allBegan = awaitInLine(launch, own, kEveryRank, 0);
  return at.allBegan;
}

// Continues from `at` until the core's part of the operation is complete, or a wait exceeds
// own.looks checks. Returns true if it is complete. One thread at a time.
template <class K>
WL_CORE inline bool runInLine(const Launch& launch, const InLine& own, Position& at) {
  const uint32_t phases = K::phases(launch);
  if (!at.begun) {
    at.block = own.core;
    at.begun = true;
    // Writes the line if no phase does, so that it does not fall behind.
    if (phases == 0) tellInLine(launch, own, 0);
  }
  for (; at.phase < phases; ++at.phase) {
    if (at.phase > 0 && !awaitInLine(launch, own, own.rank, at.phase)) return false;
    const uint32_t blocks = K::blocks(launch, own.rank);
    for (; at.block < blocks; at.block += own.cores) {
      const uint32_t need = K::needs(launch, own.rank, at.block, at.phase);
      if (at.phase > 0 && !awaitInLine(launch, own, need, at.phase)) return false;
      K::phase(launch, own.rank, at.block, at.phase);
    }
    tellInLine(launch, own, at.phase + 1);
    at.block = own.core;
  }
  if (!at.left) at.left = awaitInLine(launch, own, K::leavesAfter(launch, own.rank), phases);
  return at.left;
}

}  // namespace windlass
