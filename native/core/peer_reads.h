// SPDX-License-Identifier: Apache-2.0
// Reads of ordinary memory of ranks in other processes. native/peer implements them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/core/rank/steps.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class PeerMemory;  // native/peer/peer_memory.h
struct Call;

// Settings of WINDLASS_PEER_MEMORY.
enum class PeerMemoryUse : uint32_t {
  kAuto,   // read directly if all processes may; otherwise, and for short data, use staging buffers
  kReadv,  // read directly; if a rank cannot, all ranks refuse the operation
  kStage,  // use staging buffers
};

// Address of the probe that peers read to find out if they may read this process.
uint64_t peerMemoryProbe();
// Opens the memory of a process, whose probe is at that address. WL_UNSUPPORTED: it can't be read;
// the error says why. WL_PEER_LOST: the process has ended. Throws std::bad_alloc.
Code openPeerMemory(const wl_process_t& process, uint64_t probe,
                    std::shared_ptr<const PeerMemory>* memory, wl_error_t* error);
// Reads memory of an opened process. WL_PEER_LOST: the process has ended. WL_ABORTED: *reason is
// the errno.
Code readPeerMemory(const PeerMemory& memory, void* to, uint64_t from, uint64_t bytes, int* reason);

// Operations of one rank in which some rank reads memory that it can only pull.
class PeerReads : public Steps {
 public:
  // Returns nullptr if memory is short.
  static std::unique_ptr<PeerReads> make(Comm& comm);
  virtual ~PeerReads() = default;

  // Run the current operation, a collective or a transfer, which all ranks have entered. All ranks
  // return WL_UNSUPPORTED if a process is set to read directly and a rank cannot read. Throw
  // std::bad_alloc.
  virtual Code run(const PullForm& form, const Launch& launch, Deadline& deadline,
                   wl_error_t* error) = 0;
  virtual Code runItems(const Call& call, const Launch& launch, Deadline& deadline) = 0;
  // Call this before the rank enters. Sets the receive buffer for other hosts. If it is already
  // certain that all ranks use staging buffers, the rank also fills its half of the first round.
  virtual void beforeEntry(const PullForm& form, const Launch& launch) = 0;
  // Ends the operation on several hosts: nothing is received or read any more.
  virtual void endLanding() = 0;
  // Returns how ranks reach one another's memory, or how this rank would: a wl_peer_memory_form,
  // and the reason.
  virtual int32_t form(char* why, size_t room) const = 0;
};

}  // namespace windlass
