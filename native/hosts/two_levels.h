// SPDX-License-Identifier: Apache-2.0
// All-reduce of ranks on several hosts, in two levels: each element crosses from a host to the next
// once, as the fold of all ranks up to there, and once on its way back, as the result.
//
// What is reduced is cut into rounds, a round into lanes: one for each rank of the host with the
// fewest. A lane is one rank of each host. In a round every rank shows its input to its host; the
// lane's rank of the first host folds its lane of all inputs there and puts that to the second
// host, whose rank folds on from there, and so to the last, whose fold is the result. That goes
// back from host to host, where each rank takes it. So inputs are folded in the order of the hosts,
// which is that of ranks where each host has the ones that follow the host's before.
//
// Where things lie: in the stage of a rank, in slots that rounds take by turns. The rank's input,
// for its host alone; in its own lane, which nobody else reads of that, what it puts to the next
// host; and of the last host's ranks their lane's result, on every host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/hosts/hosts.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class PeerAccess;

class TwoLevels {
 public:
  TwoLevels(Comm& comm, const PeerAccess& access);

  // Whether ranks run that so: the same on all of them, who can tell before they have entered.
  bool takes(const PullForm& form, const Launch& launch) const;
  // Runs it, once all have entered and nobody reads stages any more. *broken: what the target
  // doesn't allow of what this rank did.
  Code run(const Launch& launch, Deadline& deadline, std::string* broken);

  // As Pulling's, of ranks as far as their own host tells.
  uint32_t steps() const { return 2 * rounds_; }
  uint32_t stepsOver(uint32_t rank) const;

 private:
  static constexpr uint32_t kNone = ~0u;
  // Rounds that may be under way at once.
  static constexpr uint64_t kSlots = 4;

  // What this rank has done, in rounds of the operation.
  struct Progress {
    uint64_t shown = 0;
    uint64_t passed = 0;
    uint64_t returned = 0;
    uint64_t taken = 0;
  };

  uint64_t slotBytes() const;
  unsigned char* slot(uint32_t rank, uint64_t round) const;
  // Of a round: where it begins, and how long it is.
  Part roundOf(const Launch& launch, uint64_t round) const;
  Part laneOf(const Launch& launch, uint64_t round, uint32_t lane) const;
  uint32_t rankOf(uint32_t host, uint32_t lane) const { return lanes_[host * width_ + lane]; }
  uint32_t last(uint32_t lane) const { return rankOf(hosts_->count() - 1, lane); }
  // Whether this rank is of a lane.
  bool hasLane() const { return lane_ != kNone; }

  bool canShow(uint64_t round) const;
  bool canPass(uint64_t round) const;
  bool canReturn(uint64_t round) const;
  bool canTake(uint64_t round) const;
  // Whether the slot that the round takes holds nothing that is wanted.
  bool isTaken(uint64_t round) const;
  bool canGoOn(const Progress& now) const;

  void show(const Launch& launch, uint64_t round);
  void pass(const Launch& launch, uint64_t round);
  void giveBack(const Launch& launch, uint64_t round);
  void take(const Launch& launch, uint64_t round);
  void keep(const char* broken);

  Comm& comm_;
  const PeerAccess& access_;
  Hosts* const hosts_;
  const uint32_t rank_;
  uint32_t width_ = 0;           // lanes
  std::vector<uint32_t> lanes_;  // the ranks of each host's lanes
  std::vector<uint32_t> here_;   // the ranks of this one
  uint32_t lane_ = kNone;        // of this rank
  bool inOrder_ = false;         // hosts have ranks that follow one another
  std::vector<const void*> sources_;
  std::string* broken_ = nullptr;
  uint32_t rounds_ = 0;      // of the operation in progress
  uint64_t roundBytes_ = 0;  // but for the last, which may be shorter
  uint64_t before_ = 0;      // rounds of all operations before
};

}  // namespace windlass
