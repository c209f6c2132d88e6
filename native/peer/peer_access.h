// SPDX-License-Identifier: Apache-2.0
// How a rank gets at ordinary memory of ranks in other processes: by process_vm_readv where all
// processes may, else through stages, which lie in the control block. Which of the two ranks agree
// on when they first need it. What is short goes through stages all the same, where none was told
// to read and all have memory for theirs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/peer/peer_memory.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class ControlBlock;
class Hosts;
struct StageLine;

class PeerAccess {
 public:
  // What all ranks say.
  struct Told;

  // Throws std::bad_alloc.
  explicit PeerAccess(Comm& comm);
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

  // Finds which ranks share a process, once; all have entered an operation.
  void look();
  bool shareProcess(uint32_t a, uint32_t b) const { return process_[a] == process_[b]; }
  // Whether they live in several.
  bool areSeveral() const { return areSeveral_; }
  // Agrees with all ranks, which have entered the operation in progress, unless they have.
  // WL_UNSUPPORTED, on all ranks, where one was told to read by process_vm_readv and one can't.
  Code settle(Deadline& deadline, wl_error_t* error);
  // Once they have: whether it is by process_vm_readv.
  bool reads() const { return reads_; }
  // Whether a collective goes through stages, the same on all ranks, which have settled: where they
  // don't read, and where its parts are short, as all ranks find alike. Stages are reserved then,
  // or what is short is read too.
  Code choose(bool isShort, bool* staged, Deadline& deadline);
  // Where ranks live on several hosts: whether those of one host read by process_vm_readv.
  bool readsBeside() const { return readsBeside_; }
  bool isStaged(bool isShort) const { return !reads_ || (!readsShort_ && isShort); }
  bool areReserved() const { return areReserved_; }
  // While ranks agree: whether they do, and whether `rank` has told what the others wait for.
  bool isAgreeing() const { return agreeing_ != nullptr; }
  bool hasTold(uint32_t rank) const;
  // Copies what a rank of another process has there; where ranks read.
  Code read(uint32_t from, void* to, uint64_t address, uint64_t bytes, Deadline& deadline);
  // The same of several runs, side by side.
  Code read(uint32_t from, void* to, const PeerMemory::Run* runs, uint32_t count,
            Deadline& deadline);
  // Before anything is made of what has been read since the last time: Ok where all of it was the
  // memory of those ranks.
  Code confirm();

  // What ranks have agreed on, or what this rank would say: a wl_peer_memory_form, and why.
  int32_t form(char* why, size_t room) const;

 private:
  // What this rank says of the others' memory.
  Code answer(uint32_t* said);
  Code refuse(const Told& all, wl_error_t* error) const;
  // This rank's, until all have done so, or have no need of them. WL_RESOURCE where one can't and
  // they don't read.
  Code reserveStages(Deadline& deadline);
  // Tells all ranks what is not 0, and waits until they have told theirs.
  using ToldWord = std::atomic<uint32_t> StageLine::*;
  Code tell(ToldWord word, uint32_t value, Deadline& deadline);
  // Of a read of that rank's memory, which gave 0 or an errno.
  Code outcome(uint32_t from, int failed, Deadline& deadline);

  Comm& comm_;
  Hosts* const hosts_;  // nullptr: all ranks live on one
  const uint32_t rank_;
  const uint32_t ranks_;
  bool looked_ = false;
  bool areSeveral_ = false;
  std::vector<uint32_t> process_;  // of each rank: the lowest one in its process
  bool settled_ = false;
  bool reads_ = false;
  bool readsShort_ = false;   // what is short too: one was told to read, or lacks a stage
  bool readsBeside_ = false;
  bool areReserved_ = false;  // all stages
  ToldWord agreeing_ = nullptr;  // what ranks tell one another now
  std::vector<const PeerMemory*> memories_;  // of each rank, where reads_
  std::vector<uint32_t> unconfirmed_;        // processes, as process_ names them
  char why_[256] = {};  // this rank can't read another's memory, or has no memory for its stage
};

// A wl_peer_memory_form, and why, by what all ranks have told there. `own`: the rank that asks, if
// it is one of them, else kNobody; `ownWhy`: why it can't read.
int32_t formAsTold(const ControlBlock& block, uint32_t ranks, uint32_t own, const char* ownWhy,
                   char* why, size_t room);

}  // namespace windlass
