// SPDX-License-Identifier: Apache-2.0
// Reads ordinary memory of ranks in other processes. If all processes may, a rank reads it by
// process_vm_readv. Otherwise it reads through staging buffers, which lie in the control block.
// Ranks agree on one of the two when they first need it. Short data goes through staging buffers in
// either case, unless a process is set to read or a rank lacks memory for its staging buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/base/far.h"
#include "native/peer/peer_memory.h"
#include "native/peer/peer_rank.h"
#include "windlass/kernel.h"

namespace windlass {

class PeerAccess : private PeerRank {
 public:
  // Summary of the words of all ranks.
  struct Told;

  // Throws std::bad_alloc.
  explicit PeerAccess(Comm& comm);

  // Finds which ranks share a process, once. All ranks have entered an operation.
  void look();
  bool shareProcess(uint32_t a, uint32_t b) const { return process_[a] == process_[b]; }
  // True if the ranks are in several processes.
  bool areSeveral() const { return areSeveral_; }
  // Agrees with all ranks, which have entered the current operation, if they have not agreed yet.
  // All ranks return WL_UNSUPPORTED if a process is set to read by process_vm_readv and a rank
  // can't.
  Code settle(Deadline& deadline, wl_error_t* error);
  // True if ranks agreed to read by process_vm_readv.
  bool reads() const { return reads_; }
  // Sets *staged to true if a collective goes through staging buffers. All ranks get the same
  // answer. They have settled, and agree on `isShort`. A collective is staged if ranks don't read,
  // or if its parts are short. Reserves staging buffers first. If that fails, short parts are read
  // too.
  Code choose(bool isShort, bool* staged, Deadline& deadline);
  // True if ranks on several hosts read the memory of ranks on their own host by process_vm_readv.
  bool readsBeside() const { return readsBeside_; }
  bool isStaged(bool isShort) const { return !reads_ || (!readsShort_ && isShort); }
  bool areReserved() const { return areReserved_; }
  // isAgreeing(): true while ranks agree. hasTold(): true if `rank` has published its word. Call
  // hasTold() only while isAgreeing().
  bool isAgreeing() const { return agreeing_ != nullptr; }
  bool hasTold(uint32_t rank) const;
  // Copies memory of a rank in another process into contiguous memory at `to`. Call it only if
  // reads(), or if readsBeside() and `from` is on the same host.
  Code read(uint32_t from, void* to, const PeerMemory::Run* runs, uint32_t count,
            Deadline& deadline);
  // Reads bytes [at, at + count) of the copy of a box.
  Code read(uint32_t from, unsigned char* to, const FarBox& box, uint64_t at, uint64_t count,
            Deadline& deadline);
  // Call this before using data read since the last call. WL_OK if all of it was those ranks'
  // memory.
  Code confirm();

  // Returns the wl_peer_memory_form that ranks have agreed on, or otherwise the one that this rank
  // would choose. `why`: the reason.
  int32_t form(char* why, size_t room) const;

 private:
  // Sets *said to what this rank publishes in StageLine::answer.
  Code answer(uint32_t* said);
  // Reserves this rank's staging buffer, and waits until all ranks have done so or don't need to.
  // WL_RESOURCE: a rank lacks memory, and ranks don't read.
  Code reserveStages(Deadline& deadline);
  // Publishes a value other than 0 to all ranks, and waits for theirs.
  using ToldWord = std::atomic<uint32_t> StageLine::*;
  Code tell(ToldWord word, uint32_t value, Deadline& deadline);

  bool looked_ = false;
  bool areSeveral_ = false;
  std::vector<uint32_t> process_;  // by rank: the lowest rank in its process
  bool settled_ = false;
  bool reads_ = false;
  bool readsShort_ = false;   // reads short data too: a process must read, or has no staging buffer
  bool readsBeside_ = false;
  bool areReserved_ = false;  // all staging buffers
  ToldWord agreeing_ = nullptr;  // word that ranks are publishing
  std::vector<const PeerMemory*> memories_;  // by rank; nullptr: not opened
  std::vector<uint32_t> unconfirmed_;        // processes, named as in process_
  char why_[256] = {};  // why this rank can't read a peer, or has no staging buffer
};

// Returns a wl_peer_memory_form and the reason, from the words of all ranks. `own`: the rank that
// asks, if it is one of them, or kNobody. `ownWhy`: why it can't read.
int32_t formAsTold(const ControlBlock& block, uint32_t ranks, uint32_t own, const char* ownWhy,
                   char* why, size_t room);

}  // namespace windlass
