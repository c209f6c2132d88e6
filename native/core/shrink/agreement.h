// SPDX-License-Identifier: Apache-2.0
// Words by which the ranks of a failed communicator agree on the next one.
#pragma once

#include <cstdint>

#include "windlass/windlass.h"

namespace windlass {

// Progress of the ranks of a failed communicator towards the next one. The word moves by
// compare-and-swap from kOpen to kProposed. From there it moves to kAgreed, which is final, or to
// kOpen of a later round. Each host has one Agreement. See native/core/shrink/shrink.h.
struct Agreement {
  enum Step : uint32_t { kOpen, kProposed, kAgreed };
  Step step;
  uint32_t round;  // up to kMostRounds
  uint32_t maker;  // the rank that proposes
  // File number of the new communicator's memory in the process that made it. On the host of
  // `maker`, that is the process of `maker`. On another host, it is the process of the lowest
  // proposed rank there. -1: not made yet, or no file because all ranks live in one process.
  int32_t file;

  static constexpr uint32_t kMostRounds = 0xffff;

  uint64_t word() const {
    return uint64_t{step} << 62 | uint64_t{round} << 44 | uint64_t{maker} << 32 |
           static_cast<uint32_t>(file);
  }
  static Agreement of(uint64_t word) {
    return {static_cast<Step>(word >> 62), static_cast<uint32_t>(word >> 44 & kMostRounds),
            static_cast<uint32_t>(word >> 32 & 0xfff), static_cast<int32_t>(word)};
  }
  // Values of a rank's own word. came: it waits in that round. opened: it is a member of the
  // proposal, and its process has opened the memory and, on several hosts, a wire. holds: it holds
  // the memory, which can be used. kGaveUp: it will not take part. 0: it never joined.
  static uint32_t came(uint32_t round) { return (round + 1) << 2; }
  static uint32_t opened(uint32_t round) { return came(round) | 1; }
  static uint32_t holds(uint32_t round) { return came(round) | 2; }
  static constexpr uint32_t kGaveUp = ~0u;

  // True if the words of two hosts are about one proposal.
  bool isOf(const Agreement& other) const {
    return round == other.round && maker == other.maker && step != kOpen && other.step != kOpen;
  }
};
static_assert(WL_MAX_RANKS <= 0xfff + 1, "a rank fits the word");

// A rank's note to other hosts about its round's proposal, written when it knows the members:
// native/core/shrink/shrink_notes.h. One page, which only this rank writes.
struct ShrinkNote {
  static constexpr uint32_t kMostNameBytes = 3560;

  uint64_t digest;  // hash of the rest, up to the end of the name
  uint32_t round;
  uint32_t maker;
  uint32_t nameBytes;  // 0: another rank of its process names the wire
  uint32_t unused;
  uint64_t members[WL_MAX_RANKS / 64];  // one bit per member
  unsigned char name[kMostNameBytes];   // name of its process's wire
};
static_assert(sizeof(ShrinkNote) == 4096, "a note is one page");

}  // namespace windlass
