// SPDX-License-Identifier: Apache-2.0
// Lines of one rank in the control block: its ENTER, items, DONE and state, its identity, and the
// state of its ordinary memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/core/descriptor.h"
#include "native/core/group_config.h"
#include "windlass/kernel.h"

namespace windlass {

// An eager input is copied on ENTER. Up to kInlineBytes it travels in the ENTER's own line,
// otherwise in the rank's eager area.
constexpr uint64_t kInlineBytes = 16;

// ENTER: `sequence` is stored with release after the rest is set.
struct alignas(kLine) Entry {
  std::atomic<uint32_t> sequence;  // low 32 bits
  std::atomic<int32_t> core;       // on which the rank entered
  Descriptor descriptor;
  RankArgs args;
  unsigned char inlined[kInlineBytes];
};

// The items of a rank in one phase.
//
// next = low 16 bits of the sequence << 48 | phase << 40 | blocks taken from the front << 20 |
// blocks left. The rank that advances `next` by compare-and-swap runs that block. The owner takes
// from the front and others from the back, so that each rank accesses the same memory repeatedly.
// `finished` counts blocks that have run.
//
// If items are claimed, every rank writes its own line before its ENTER. A peer reads it only
// between that ENTER and its own exit. The peer therefore sees the word of that operation or of the
// next one, and 16 bits of the sequence distinguish the two. This holds even if many operations
// before did not write the line.
struct alignas(kLine) Work {
  std::atomic<uint64_t> next;
  std::atomic<uint32_t> finished;
};
constexpr uint32_t kMostBlocks = (1u << 20) - 1;
// Steps that are added to `next`.
constexpr uint64_t kTakeFront = (uint64_t{1} << 20) - 1;
constexpr uint64_t kTakeBack = ~uint64_t{0};

constexpr uint64_t workWord(uint64_t sequence, uint32_t phase, uint32_t blocks) {
  return sequence << 48 | uint64_t{phase} << 40 | blocks;
}

// A phase of an operation, or the number of its completed phases.
constexpr uint64_t phaseWord(uint64_t sequence, uint32_t phase) {
  return sequence << 8 | phase;
}
constexpr uint64_t sequenceOf(uint64_t phaseWord) {
  return phaseWord >> 8;
}
constexpr uint32_t phaseOf(uint64_t phaseWord) {
  return static_cast<uint32_t>(phaseWord & 0xff);
}
static_assert(kMostPhases <= 0xff, "phases fit a byte");

// DONE: the phaseWord of the phases in which all of this rank's items have run.
struct alignas(kLine) Done {
  std::atomic<uint64_t> word;
};

// Read by diagnostics, close() and deferred release.
struct alignas(kLine) State {
  std::atomic<uint32_t> busy;      // 1 while a thread is inside an operation
  std::atomic<uint32_t> sequence;  // low 32 bits
  std::atomic<int32_t> operation;
  std::atomic<int32_t> awaited;  // rank, -1 nobody, -2 several
  std::atomic<int32_t> core;     // on which this rank last began an operation; -1: it began none
  std::atomic<uint32_t> closing;
  std::atomic<uint32_t> left;       // 1 after close: the rank enters nothing any more
  std::atomic<uint32_t> running;    // threads of this rank inside a claimed item of any rank
  std::atomic<uint32_t> contested;  // times that a wait found another thread busy on its core
  std::atomic<int32_t> movingCore;  // on which this rank last began Waiter::move()
  std::atomic<uint64_t> item;       // the last claimed item that it began, valid while `running`
  std::atomic<int64_t> movedNs;     // when it last ended Waiter::move(); kMovesNow: it is inside
  std::atomic<uint32_t> drivers;    // threads that move messages outside its calls
  std::atomic<int32_t> sendsTo;     // first rank that asynchronous sends wait for, -1 nobody
};
static_assert(sizeof(State) == kLine, "the state is one line");

constexpr int64_t kMovesNow = INT64_MAX;

// A claimed item, as a state line names it. 0: none yet.
struct Item {
  uint32_t owner;
  uint32_t phase;
  uint32_t block;

  uint64_t word() const { return uint64_t{owner + 1} << 28 | uint64_t{phase} << 20 | block; }
  static Item of(uint64_t word) {
    return {static_cast<uint32_t>(word >> 28) - 1, static_cast<uint32_t>(word >> 20 & 0xff),
            static_cast<uint32_t>(word & kMostBlocks)};
  }
};

// One futex word per rank. A thread of the rank that goes to sleep increases `sleeping`, checks
// again, then sleeps on `ring`.
struct alignas(kLine) Doorbell {
  std::atomic<uint32_t> ring;
  std::atomic<uint32_t> sleeping;
};

// State of a rank's ordinary memory, in a group that spans processes. Peers in other processes read
// that memory themselves or find it in the rank's staging buffer: see native/peer/peer_access.h. A
// staging buffer has two halves, used by the parity of a round. Rounds are counted over all
// operations.
struct alignas(kLine) StageLine {
  std::atomic<uint64_t> probe;     // peerMemoryProbe() of its joined process
  std::atomic<uint32_t> answer;    // if it can read the others' memory; 0: no answer yet
  std::atomic<uint32_t> reserved;  // if its staging buffer has memory; 0: not known yet
  std::atomic<uint64_t> filled;    // number of rounds for which this rank has filled its half
  std::atomic<uint64_t> taken;     // number of rounds in which it has read all that it needs
  // Numbers of rounds in two levels, over all operations (native/peer/two_levels.h). shown: rounds
  // for which this rank has published its input on its host. used: rounds whose result it has
  // taken.
  std::atomic<uint64_t> shown;
  std::atomic<uint64_t> used;
  // passed: rounds for which this rank has folded its lane and passed the fold on. came: rounds
  // whose lane result has arrived at this host.
  std::atomic<uint64_t> passed;
  std::atomic<uint64_t> came;
};
static_assert(sizeof(StageLine) == kLine, "what a rank tells is one line");

// Data that a rank sends to one reader in a transfer. Each half of the rank's staging buffer has a
// part for this reader. The rank fills the two parts in turn.
struct StagePair {
  std::atomic<uint64_t> filled;  // number of times, over all operations
  std::atomic<uint64_t> taken;
  uint64_t bytes[2];  // size of the part in each half
};

struct RankLines {
  Entry entry[2];
  Work work;
  Done done;
  State state;
  Doorbell bell;
};
static_assert(sizeof(RankLines) == 6 * kLine, "one line each");

static_assert(sizeof(Entry) == kLine, "an ENTER is one line");

// Identity of a rank, and whether it lives. Operations do not read it.
struct alignas(kLine) Member {
  std::atomic<uint32_t> joined;  // 1 after it got a handle: a rank joins once
  std::atomic<uint32_t> lost;    // 1 after its process ended: it accesses nothing any more
  std::atomic<uint32_t> beats;   // heartbeat: increases while its process lives and watches others
  std::atomic<uint32_t> shrink;  // its word in a shrink: Agreement::came() and the following ones
  // Its process, after it has joined, if ranks live in several processes.
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> pidNamespace;
  std::atomic<uint64_t> started;
  uint32_t former;  // its rank in the parent communicator; kNobody: no parent
  uint32_t host;    // host of its process
  // True if it has joined on a host other than this block's. Its process ids are not valid here.
  bool isElsewhere() const {
    return pid.load(std::memory_order_acquire) != 0 &&
           pidNamespace.load(std::memory_order_relaxed) == 0;
  }
  // For several hosts. agreement: state of its host's Agreement that the rank last sent to other
  // hosts. saysFailed: 1 after its process, on another host, has reported that the communicator
  // failed.
  std::atomic<uint64_t> agreement;
  std::atomic<uint32_t> saysFailed;
};
static_assert(sizeof(Member) == kLine, "who a rank is, is one line");

}  // namespace windlass
