// SPDX-License-Identifier: Apache-2.0
// A window in the memory of GPUs: a part for each rank on its own one, mapped once in each process,
// so that the kernels of all its ranks reach it at the same address.
#pragma once

#include <vector>

#include "native/device/cuda/grid.h"
#include "native/device/cuda/own_part.h"
#include "native/device/cuda/peer_parts.h"
#include "native/device/cuda/reach.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class DeviceWindow {
 public:
  DeviceWindow() = default;
  DeviceWindow(const DeviceWindow&) = delete;
  DeviceWindow& operator=(const DeviceWindow&) = delete;

  // As RankDevice::makeWindow(). WL_UNSUPPORTED: more than 64 ranks, more of a process on a GPU
  // than it runs at a time, GPUs that don't reach one another, or whose memory can't go to another
  // process.
  Code make(Gpu& gpu, Copies& copies, AllRanks& exchange, uint64_t bytes, wl_error_t* error);
  uint32_t culprit() const { return culprit_; }
  Code close(wl_error_t* error);

  CuAddress part(uint32_t rank) const { return parts_[rank]; }
  uint64_t bytes() const { return bytes_; }  // of a part, in whole pages
  // The ranks of this process that share this one's GPU, and its place among them. A window that
  // could not be made may have bytes() and no grid.
  bool hasGrid() const { return grid_ != nullptr; }
  Grid& grid() const { return *grid_; }
  uint32_t slot() const { return slot_; }

 private:
  // What ranks tell one another.
  struct Statement {
    int32_t code;    // of this rank, so far
    uint32_t keeps;  // a copy of it may run on: then nobody's part is given back
    uint32_t device;
    uint64_t bytes;
    uint64_t address;
    uint64_t grid;        // its name, where the rank is the first one of its process on its GPU
    FileOfferName offer;  // of its part, where ranks live in several processes
    uint64_t peers;       // the name of their parts, where the rank is the first one of its process
  };

  // States this rank's part and `code`; WL_OK once all have stated theirs, and all are OK.
  Code state(AllRanks& exchange, Code code, wl_error_t* error);
  Code stateUnlessLost(AllRanks& exchange, Code code, wl_error_t* error);
  Code makeOwn(uint64_t bytes, wl_error_t* error);
  // The first rank of a process asks for the parts of others.
  Code ask(AllRanks& exchange, wl_error_t* error);
  // Gives this rank's part to other processes, and takes what was asked for.
  Code share(AllRanks& exchange, wl_error_t* error);
  Code checkBytes(wl_error_t* error) const;
  Code makeGrid(wl_error_t* error);
  // Holds what the first ranks have made, and tries the parts of other GPUs and processes.
  Code reach(wl_error_t* error);
  PlacedPart placed(uint32_t rank) const {
    return {rank, statements_[rank].device, parts_[rank]};
  }
  bool isHere(uint32_t rank) const { return beside_[rank] == beside_[rank_]; }
  bool sharesDevice(uint32_t rank) const {
    return isHere(rank) && statements_[rank].device == own_.device;
  }
  bool spansProcesses() const;
  // Whether no rank's copies may touch a part any more, as all have stated.
  bool isQuiet() const;
  uint32_t firstOnDevice() const;
  // Each GPU of this process's ranks once, this rank's first.
  std::vector<uint32_t> devices() const;

  Gpu* gpu_ = nullptr;
  Copies* copies_ = nullptr;
  uint32_t rank_ = 0;
  uint32_t slot_ = 0;
  uint32_t culprit_ = kNobody;
  bool isWhole_ = false;  // the last exchange
  uint64_t bytes_ = 0;
  Statement own_ = {};
  std::vector<Statement> statements_;
  std::vector<uint32_t> beside_;  // the first rank that lives with each
  std::vector<CuAddress> parts_;
  OwnPart part_;
  Grid* grid_ = nullptr;
  PeerParts* peers_ = nullptr;  // where ranks live in several processes
};

}  // namespace windlass::cuda
