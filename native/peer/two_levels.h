// SPDX-License-Identifier: Apache-2.0
// All-reduce over several hosts, in two levels. Each element crosses between neighbouring hosts
// twice: forward as the fold of all ranks so far, and back as the result.
//
// The input is cut into rounds, and a round into lanes. The host with the fewest ranks sets the
// number of lanes. A lane has one rank on each host.
//
// 1. Every rank publishes its input of the round on its host.
// 2. On the first host, the rank of each lane folds the lane's part of all inputs there. It puts
//    the fold to the second host, whose rank folds on. The fold of the last host is the result.
// 3. The result returns from host to host. On each, every rank takes it.
//
// Inputs are folded in the order of the hosts. That is the order of the ranks if each host has the
// ranks that follow those of the host before.
//
// Data lies in slots of the ranks' staging buffers, which rounds use in turn. A rank's slot holds
// its input, for its own host only. In the rank's own lane, which no other rank reads as input, the
// slot holds the fold for the next host. The slots of the last host's ranks hold their lane's
// result, on every host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/peer/peer_rank.h"
#include "windlass/kernel.h"

namespace windlass {

class PeerAccess;

class TwoLevels : private PeerRank {
 public:
  TwoLevels(Comm& comm, const PeerAccess& access);

  // True if ranks run `form` in two levels. All ranks get the same answer, before they have
  // entered.
  bool takes(const PullForm& form, const Launch& launch) const;
  // Runs the operation. Call it after all ranks have entered and no rank reads staging buffers.
  // *broken: an access of this rank that the target forbids.
  Code run(const Launch& launch, Deadline& deadline, std::string* broken);

  // Progress, as in Pulling. Ranks publish theirs only on their own host.
  uint32_t steps() const { return 2 * rounds_; }
  uint32_t stepsOver(uint32_t rank) const;

 private:
  static constexpr uint32_t kNone = ~0u;
  // Largest number of rounds in progress.
  static constexpr uint64_t kSlots = 4;

  // Step of a round, and the number of rounds in which this rank has completed it.
  struct Step {
    bool (TwoLevels::*can)(uint64_t round) const;
    void (TwoLevels::*run)(const Launch& launch, uint64_t round);
    uint64_t rounds = 0;
  };

  uint64_t slotBytes() const;
  unsigned char* slot(uint32_t rank, uint64_t round) const;
  // Offset and length of a round.
  Part roundOf(const Launch& launch, uint64_t round) const;
  Part laneOf(const Launch& launch, uint64_t round, uint32_t lane) const;
  uint32_t rankOf(uint32_t host, uint32_t lane) const { return lanes_[host * width_ + lane]; }
  uint32_t last(uint32_t lane) const { return rankOf(hosts_->count() - 1, lane); }
  // True if this rank is in a lane.
  bool hasLane() const { return lane_ != kNone; }

  bool canShow(uint64_t round) const;
  bool canPass(uint64_t round) const;
  bool canReturn(uint64_t round) const;
  bool canTake(uint64_t round) const;
  // True if the slot for the round holds nothing that a rank still needs.
  bool isTaken(uint64_t round) const;

  void show(const Launch& launch, uint64_t round);
  void pass(const Launch& launch, uint64_t round);
  void giveBack(const Launch& launch, uint64_t round);
  void take(const Launch& launch, uint64_t round);
  void keep(const char* broken);

  const PeerAccess& access_;
  uint32_t width_ = 0;           // number of lanes
  std::vector<uint32_t> lanes_;  // ranks of the lanes, host by host
  std::vector<uint32_t> here_;   // ranks of this host
  uint32_t lane_ = kNone;        // lane of this rank
  bool inOrder_ = false;         // each host's ranks follow those of the host before
  std::vector<const void*> sources_;
  std::vector<double> factors_;  // of the sources, in a premultiplied sum
  std::string* broken_ = nullptr;
  uint32_t rounds_ = 0;      // rounds of the current operation
  uint64_t roundBytes_ = 0;  // the last round may be shorter
  uint64_t before_ = 0;      // rounds of all earlier operations
};

}  // namespace windlass
