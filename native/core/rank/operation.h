// SPDX-License-Identifier: Apache-2.0
// The operation of one rank that is in progress, or its last one: its sequence, what the rank
// states of it with ENTER, and whether other ranks state the same. Nothing here waits.
#pragma once

#include "native/core/call.h"
#include "native/core/group.h"

namespace windlass {

class Operation {
 public:
  // Operations of fewer elements travel with ENTER in any case, so nobody looks at their memory.
  static constexpr uint64_t kFewElements = 64;

  Operation(Group& group, uint32_t rank)
      : group_(group),
        rank_(rank),
        own_(group.lines(rank)),
        ofProcessesOnCores_(group.config().ranksAre() == kProcessesOnCores),
        ranksAre_(group.config().ranksAre()),
        sequence_(group.config().firstSequence - 1) {}

  uint64_t wholeSequence() const { return sequence_; }
  // Low 32 bits of the sequence. Diagnostics report them.
  uint32_t sequence() const { return static_cast<uint32_t>(sequence_); }
  // Low 32 bits of the sequence that the next counted operation gets. Thread-safe, also if the rank
  // will refuse the caller.
  uint32_t nextSequence() const {
    return own_.state.sequence.load(std::memory_order_relaxed) + 1;
  }
  const Descriptor& current() const { return current_; }
  // The one peer that a one-sided operation concerns.
  uint32_t peer() const { return current_.peer(); }

  void begin(const Descriptor& descriptor) {
    current_ = descriptor;
    own_.state.operation.store(descriptor.operation(), std::memory_order_relaxed);
  }
  // Gives the operation the next sequence.
  void count() {
    ++sequence_;
    own_.state.sequence.store(sequence(), std::memory_order_relaxed);
  }
  // Writes what peers need to know of the operation, into lines that they do not read yet.
  // `rides`: its input travels with ENTER. `eager`: it does in an eager kernel.
  void fillEntry(const Call& call, bool rides, bool eager);
  // How the ranks run, as far as it selects which inputs travel with ENTER. Processes that lately
  // named only memory that their peers reach count as threads. The same on every rank.
  RanksAre ranksAre() const { return ranksAre_; }
  // Looks at the memory that all ranks named in the previous operation. Call before this rank
  // enters, after all ranks have entered the previous operation.
  void seePrevious() {
    if (!ofProcessesOnCores_) return;
    if (own_.entry[(sequence_ - 1) & 1].descriptor.count >= kFewElements) seePlaces();
  }
  // Makes the entry visible to peers.
  void publishEntry() {
    own_.entry[sequence_ & 1].sequence.store(sequence(), std::memory_order_release);
  }
  void finishPhase(uint32_t owner, uint32_t phase) {
    group_.lines(owner).done.word.store(phaseWord(sequence_, phase + 1),
                                        std::memory_order_release);
  }

  // Returns the arguments that `rank` stated for this operation, which it has entered. Valid until
  // this rank's next operation.
  const RankArgs& stated(uint32_t rank) const {
    return group_.lines(rank).entry[sequence_ & 1].args;
  }
  const PartTable& parts(uint32_t rank) const { return group_.block().parts(rank, sequence_); }
  bool entered(uint32_t rank) const { return group_.entered(rank, sequence_); }
  // Returns true if the first `phases` phases of `rank` are done.
  bool isDone(uint32_t rank, uint32_t phases) const {
    return group_.done(rank, sequence_, phases);
  }
  // Returns true if two ranks that have entered `sequence` stated the same operation and matching
  // parts.
  bool agree(uint32_t a, uint32_t b, uint64_t sequence) const;
  // Returns true if `descriptor` was the last operation and every rank has entered it with the same
  // call. Then stated() returns what each rank stated there.
  bool allStated(const Descriptor& descriptor) const;
  // Returns true if a rank names memory that not all peers reach, so that all ranks pull. They
  // always do so on several hosts. All ranks must have entered the operation. The result is the
  // same on every rank.
  bool pulls(const Launch& launch) const;
  // Returns true if this rank may write the output of `owner`, which has entered.
  bool reachesOutput(const Launch& launch, uint32_t owner) const {
    return !group_.isFar(rank_, owner, launch.of(owner).out);
  }

 private:
  // How this rank names its memory to its peers if ranks live in several processes. For seePrevious(),
  // `aux` is where an eager input lies. Kernels with eager inputs have no other aux than their parts.
  RankArgs placesOf(const Call& call, bool eager) const;
  [[gnu::noinline]] void seePlaces();
  // Fills in this rank's part table.
  [[gnu::noinline]] const PartTable& stateParts(const Call& call);

  Group& group_;
  const uint32_t rank_;
  RankLines& own_;
  const bool ofProcessesOnCores_;
  RanksAre ranksAre_;
  uint64_t sequence_;
  Descriptor current_ = {};
};

}  // namespace windlass
