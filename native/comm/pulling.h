// SPDX-License-Identifier: Apache-2.0
// How a rank runs a collective that names ordinary memory of ranks in other processes: it writes
// its own output alone, and reads what it needs of the others by process_vm_readv where all
// processes may, else through stages. A stage lies in the control block: its owner fills one half
// of it while its readers read the other. Which of the two ranks agree on when they first need it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/window/peer_memory.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class ControlBlock;
struct FarBox;
struct FarPlan;

// Runs the items of `block` of phase k, of the table that `rank` has stated.
using PhaseOfItems = void (*)(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k);

class Pulling {
 public:
  // nullptr where memory is short.
  static std::unique_ptr<Pulling> make(Comm& comm);
  ~Pulling();
  Pulling(const Pulling&) = delete;
  Pulling& operator=(const Pulling&) = delete;

  // Runs the operation in progress, which all ranks have entered. WL_UNSUPPORTED, on all ranks and
  // with nothing moved, where one was told to read by process_vm_readv and one can't.
  Code run(const PullForm& form, const Launch& launch, Deadline& deadline, wl_error_t* error);

  // The same of the operation in progress of a transfer, whose phases are those from firstPhase on.
  // Each rank runs its own items; of those that read what it can't reach, it has a copy first.
  Code runItems(FarPlan& far, const Launch& launch, PhaseOfItems items, uint32_t firstPhase,
                Deadline& deadline, wl_error_t* error);

  // Of the phase in progress, where ranks read through stages: twice its rounds, else 0; and how
  // many halves of them `rank` has filled or read.
  uint32_t steps() const { return steps_; }
  uint32_t stepsOver(uint32_t rank) const;

  // What ranks have agreed on, or what this rank would say: a wl_peer_memory_form, and why.
  int32_t form(char* why, size_t room) const;

 private:
  // One phase of it.
  struct Phase {
    const PullForm& form;
    const Launch& launch;
    uint32_t k;
    Deadline& deadline;

    const PullPhase& of() const { return form.phase[k]; }
    Pulled pulled(uint32_t from, uint32_t to) const { return form.pulled(launch, from, to, k); }
    Place place(uint32_t from) const {
      return of().ofOutputs ? launch.of(from).out : launch.of(from).in;
    }
  };

  explicit Pulling(Comm& comm);

  // Finds which ranks share a process, once.
  void look();
  bool isRemote(const Phase& phase, uint32_t from, uint32_t to) const;
  bool isAnyRemote(const PullForm& form, const Launch& launch) const;
  Code settle(Deadline& deadline, wl_error_t* error);
  // What this rank says of the others' memory.
  Code answer(uint32_t* said);
  Code refuse(wl_error_t* error) const;

  Code runPhase(const Phase& phase);
  Code readAll(const Phase& phase);
  Code foldAll(const Phase& phase);
  Code runRounds(const Phase& phase, uint64_t segment, uint64_t rounds);
  Code fill(const Phase& phase, uint64_t segment, uint64_t round);
  Code take(const Phase& phase, uint64_t segment, uint64_t round);
  // Once a rank has filled its half of a round.
  Code awaitFilled(const Phase& phase, uint32_t from, uint64_t round);
  // In the stage of `from`.
  const uint8_t* staged(const Phase& phase, uint32_t from, uint32_t to, uint64_t segment,
                        uint64_t round) const;
  Code copyFrom(uint32_t from, void* to, uint64_t address, uint64_t bytes);
  // Bytes of what is read of `from`, from `at` on, go to this rank's output.
  void put(const Phase& phase, const Pulled& pulled, uint64_t at, const uint8_t* bytes,
           uint64_t count) const;
  // sources_ hold what all ranks have.
  void fold(const Phase& phase, const Pulled& pulled, uint64_t at, uint64_t count);
  // Ok, or what ends the operation.
  Code goesOn(const Phase& phase);

  // This rank's items of a phase of a transfer.
  Code runOwnItems(FarPlan& far, const Launch& launch, PhaseOfItems items, uint32_t k,
                   Deadline& deadline);
  // Copies what the item reads of other processes beside it.
  Code localize(FarPlan& far, uint64_t* item, Deadline& deadline);
  Code readBox(uint32_t from, const FarBox& box, unsigned char* to);
  Code takeBox(const FarPlan& far, uint32_t from, uint64_t bytes, unsigned char* to,
               Deadline& deadline);
  // Fills what readers have room for; whether all have got all of the phase.
  bool serve(const FarPlan& far);
  bool serve(const FarPlan& far, uint32_t reader);
  uint64_t pairBytes() const;

  Comm& comm_;
  const uint32_t rank_;
  const uint32_t ranks_;
  bool looked_ = false;
  std::vector<uint32_t> process_;  // of each rank: the lowest one in its process
  bool settled_ = false;
  bool reads_ = false;                        // by process_vm_readv
  std::vector<const PeerMemory*> memories_;   // of each rank, where reads_
  std::vector<const uint8_t*> sources_;
  std::vector<StridedView> views_;
  unsigned char* scratch_ = nullptr;
  uint64_t rounds_ = 0;  // over all operations
  uint32_t steps_ = 0;
  // In a phase of a transfer, for each reader: what comes next for it, in its words and in bytes of
  // that box; and for each owner, how much of its half this rank has read.
  struct Served {
    uint64_t at;
    uint64_t from;
  };
  uint32_t servedPhase_ = 0;
  std::vector<Served> served_;
  std::vector<uint32_t> read_;
  char why_[256] = {};   // this rank can't read another's memory
};

// A wl_peer_memory_form, and why, by what all ranks have told there. `own`: the rank that asks, if
// it is one of them, else kNobody; `ownWhy`: why it can't read.
int32_t formAsTold(const ControlBlock& block, uint32_t ranks, uint32_t own, const char* ownWhy,
                   char* why, size_t room);

}  // namespace windlass
