// SPDX-License-Identifier: Apache-2.0
// How a rank runs the operation of a transfer in which any rank reads ordinary memory of other
// processes: each runs its own items, and has a copy first of what an item reads that it can't
// reach. Where ranks read through stages, it fills its readers' parts of its own meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/peer/peer_access.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;
class FarBox;
class Hosts;
struct FarPlan;

class FarItems {
 public:
  // Throws std::bad_alloc.
  FarItems(Comm& comm, PeerAccess& access);
  FarItems(const FarItems&) = delete;
  FarItems& operator=(const FarItems&) = delete;

  // Runs the operation in progress, which all ranks have entered; its phases are those of the
  // transfer from firstPhase on. WL_UNSUPPORTED as PeerAccess::settle(), with nothing moved.
  Code run(FarPlan& far, const Launch& launch, uint32_t firstPhase, Deadline& deadline,
           wl_error_t* error);

 private:
  // This rank's items of a phase.
  Code runOwnItems(FarPlan& far, const Launch& launch, uint32_t k, Deadline& deadline);
  // Copies what the item reads of other processes beside it.
  Code localize(FarPlan& far, uint64_t* item, Deadline& deadline);
  Code readBox(uint32_t from, const FarBox& box, unsigned char* to, Deadline& deadline);
  Code takeBox(const FarPlan& far, uint32_t from, uint64_t bytes, unsigned char* to,
               Deadline& deadline);
  // Fills what readers have room for; whether all have got all of the phase.
  bool serve(const FarPlan& far);
  bool serve(const FarPlan& far, uint32_t reader);
  // Until that holds, while this rank serves others; `of`: whom it waits for.
  template <class Holds>
  Code awaitServing(const FarPlan& far, uint32_t of, Deadline& deadline, Holds&& holds);

  Comm& comm_;
  PeerAccess& access_;
  Hosts* const hosts_;  // nullptr: all ranks live on one
  const uint32_t rank_;
  const uint32_t ranks_;
  const uint64_t partBytes_;  // of a half of a stage, for one reader
  uint32_t phase_ = 0;        // of the transfer, in progress
  // Of each reader: what comes next for it, in its words and in bytes of that box.
  struct Served {
    uint64_t at;
    uint64_t from;
  };
  std::vector<Served> served_;
  std::vector<uint64_t> read_;  // of each owner: how much of its half this rank has read
  std::string broken_;          // what the target doesn't allow of how this rank served one
};

}  // namespace windlass
