// SPDX-License-Identifier: Apache-2.0
// How a rank runs a collective that names ordinary memory of ranks in other processes: it writes
// its own output alone, and reads what it needs of the others directly or through stages
// (native/peer/peer_access.h). Of a stage its owner fills one half while its readers read the
// other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/hosts/far_items.h"
#include "native/hosts/two_levels.h"
#include "native/peer/landing.h"
#include "native/peer/peer_access.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class Hosts;

class Pulling {
 public:
  // nullptr where memory is short.
  static std::unique_ptr<Pulling> make(Comm& comm);
  ~Pulling();
  Pulling(const Pulling&) = delete;
  Pulling& operator=(const Pulling&) = delete;

  // Runs the operation in progress, which all ranks have entered. WL_UNSUPPORTED as
  // PeerAccess::settle(), with nothing moved.
  Code run(const PullForm& form, const Launch& launch, Deadline& deadline, wl_error_t* error);

  // Before this rank enters: has other hosts put where it receives; and in an operation that all
  // will run through stages, as far as it can tell by itself, fills its half of the first round.
  void beforeEntry(const PullForm& form, const Launch& launch);
  // Over hosts, once that is over: nothing lands here any more, nor is read.
  void endLanding() { landing_.end(); }

  // Of the phase in progress, where ranks read through stages: twice its rounds, else 0; and how
  // many halves of them `rank` has filled or read. While ranks agree: 1, and whether it has told.
  uint32_t steps() const {
    return access_.isAgreeing() ? 1 : twoLevels_.steps() > 0 ? twoLevels_.steps() : steps_;
  }
  uint32_t stepsOver(uint32_t rank) const;

  const PeerAccess& access() const { return access_; }
  // The same for transfers.
  FarItems& items() { return items_; }

 private:
  // One phase of it.
  struct Phase {
    const PullForm& form;
    const Launch& launch;
    uint32_t k;
    bool staged;  // what lies far comes through stages

    const PullPhase& of() const { return form.phase[k]; }
    Pulled pulled(uint32_t from, uint32_t to) const { return form.pulled(launch, from, to, k); }
    Place place(uint32_t from) const {
      return of().ofOutputs ? launch.of(from).out : launch.of(from).in;
    }
  };

  explicit Pulling(Comm& comm);

  // Group::isFar() of what `to` reads of `from`, which is asked of all pairs again and again.
  bool isFar(const Phase& phase, uint32_t from, uint32_t to) const;
  bool isAnyFar(const PullForm& form, const Launch& launch) const;
  // Whether two copies of its parts take less than the system calls that read them; every rank can
  // tell before others have entered.
  bool isShort(const PullForm& form, const Launch& launch) const;
  // Whether peers reach nothing of this rank's but its stage, nor it of theirs.
  bool meetInStages(const Launch& launch) const;

  Code runPhase(const Phase& phase, Deadline& deadline);
  Code readAll(const Phase& phase, Deadline& deadline);
  Code foldAll(const Phase& phase, Deadline& deadline);
  // Whether what a rank reads goes through stages: all that is far, but what lands.
  bool isStaged(const Phase& phase, uint32_t from, uint32_t to) const {
    return phase.staged && isFar(phase, from, to) && !lands(phase, from, to) &&
           !isReadBeside(phase, from, to);
  }
  // Whether `to`, in another process of the same of several hosts, reads it itself.
  bool isReadBeside(const Phase& phase, uint32_t from, uint32_t to) const;
  // native/peer/landing.cpp
  //
  // Whether the process of `from` puts what `to`, on another host, reads of it where `to` wants it.
  bool lands(const Phase& phase, uint32_t from, uint32_t to) const;
  // Before others see this rank enter: has that come.
  void receive(const PullForm& form, const Launch& launch);
  // Sends what lands elsewhere; waits until all that lands here is there, and all of that is sent.
  Code land(const Phase& phase, Deadline& deadline);
  Code awaitLanded(const Phase& phase, Deadline& deadline);

  // Bytes of what is read of `from`, from `at` on, go to this rank's output.
  void put(const Phase& phase, const Pulled& pulled, uint64_t at, const uint8_t* bytes,
           uint64_t count) const;
  // kKernels.copy().
  void copy(void* to, const void* from, uint64_t bytes) const;
  // sources_ hold what all ranks have.
  void fold(const Phase& phase, const Pulled& pulled, uint64_t at, uint64_t count);
  // Ok, or what ends the operation.
  Code goesOn(Deadline& deadline);

  // native/peer/pull_rounds.cpp
  //
  // How much a round moves at most from one rank to another.
  uint64_t segmentOf(const PullPhase& phase) const;
  Code runRounds(const Phase& phase, uint64_t segment, uint64_t rounds, Deadline& deadline);
  Code fill(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline);
  // Whether a rank that lives elsewhere reads this one's memory from `at` on.
  bool isReadFrom(const Phase& phase, uint64_t at) const;
  // Runs what two levels take.
  Code runTwoLevels(const Launch& launch, Deadline& deadline);
  // Whether that rank, in another process, has read what this rank's half held before.
  bool hasTaken(uint32_t reader, uint64_t round) const;
  void copyHalf(const Phase& phase, uint64_t segment, uint64_t round);
  Code take(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline);
  // Once a rank has filled its half of a round.
  Code awaitFilled(uint32_t from, uint64_t round, Deadline& deadline);
  // In the stage of `from`.
  const uint8_t* staged(const Phase& phase, uint32_t from, uint32_t to, uint64_t segment,
                        uint64_t round) const;

  // Tells that this rank's half is filled; other hosts, behind what their ranks read of it.
  void tellFilled(const Phase& phase, uint64_t segment, uint64_t round);
  void putHalf(const Phase& phase, uint64_t segment, uint64_t round);
  void tellRefused(const Launch& launch) const;
  void tellTaken(const Phase& phase) const;

  Comm& comm_;
  Hosts* const hosts_;  // nullptr: all ranks live on one
  const uint32_t rank_;
  const uint32_t ranks_;
  PeerAccess access_;
  FarItems items_;
  Landing landing_;
  TwoLevels twoLevels_;
  std::vector<const void*> sources_;
  unsigned char* scratch_ = nullptr;
  uint64_t rounds_ = 0;    // over all operations
  bool isFilled_ = false;  // its half for the next of them
  mutable std::string broken_;  // what the target doesn't allow of what this rank did
  uint32_t steps_ = 0;
};

}  // namespace windlass
