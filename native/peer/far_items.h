// SPDX-License-Identifier: Apache-2.0
// Runs a transfer in which any rank reads ordinary memory of other processes. Each rank runs its
// own items. It first copies the data that an item reads but can't reach. If ranks read through
// staging buffers, a rank meanwhile fills its readers' parts of its own staging buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/peer/peer_access.h"
#include "native/peer/peer_rank.h"
#include "windlass/kernel.h"

namespace windlass {

class FarBox;
struct FarPlan;

class FarItems : private PeerRank {
 public:
  // Throws std::bad_alloc.
  FarItems(Comm& comm, PeerAccess& access);

  // Runs the current operation, which all ranks have entered. Its phases are those of the transfer
  // from firstPhase on. WL_UNSUPPORTED: see PeerAccess::settle(). Nothing has moved then.
  Code run(FarPlan& far, const Launch& launch, uint32_t firstPhase, Deadline& deadline,
           wl_error_t* error);

 private:
  // Runs this rank's items of a phase.
  Code runOwnItems(FarPlan& far, const Launch& launch, uint32_t k, Deadline& deadline);
  // Copies the data that the item reads of other processes.
  Code localize(FarPlan& far, uint64_t* item, Deadline& deadline);
  Code takeBox(const FarPlan& far, uint32_t from, uint64_t bytes, unsigned char* to,
               Deadline& deadline);
  // Fills the reader's part while it has room. True if the reader has received all of the phase.
  bool serve(const FarPlan& far, uint32_t reader);
  // Serves other ranks until holds(isServed) returns true. `isServed`: all readers have received
  // the phase. `of`: the rank that this rank waits for.
  template <class Holds>
  Code awaitServing(const FarPlan& far, uint32_t of, Deadline& deadline, Holds&& holds);

  PeerAccess& access_;
  const uint64_t partBytes_;  // one reader's part of half a staging buffer
  uint32_t phase_ = 0;        // current phase of the transfer
  // For each reader, the next box to send: its offset in words, and the byte to continue from.
  struct Served {
    uint64_t at;
    uint64_t from;
  };
  std::vector<Served> served_;
  std::vector<uint64_t> read_;  // by owner: bytes of its half that this rank has read
  std::string broken_;          // access that the target forbids, while this rank served others
};

}  // namespace windlass
