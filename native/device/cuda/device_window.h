// SPDX-License-Identifier: Apache-2.0
// A window in GPU memory. Each rank has a part on its own GPU. Each process maps every part once,
// so that the kernels of all its ranks reach it at the same address.
#pragma once

#include <algorithm>
#include <vector>

#include "native/device/cuda/grid.h"
#include "native/device/cuda/parts.h"
#include "native/memory/stated_window.h"

namespace windlass::cuda {

// Data that ranks of a window exchange.
struct DeviceStatement {
  int32_t code;    // result of this rank so far
  uint32_t keeps;  // 1: a copy of this rank may still run, so no rank releases its part
  uint32_t device;
  uint64_t bytes;
  uint64_t address;
  uint64_t grid;        // its name, if the rank is the first of its process on its GPU
  FileOfferName offer;  // name of its part's offer, if ranks live in several processes
  uint64_t peers;       // name of the peers' parts that the rank holds
};

class DeviceWindow : public StatedWindow<DeviceStatement> {
 public:
  // Same as RankDevice::makeWindow(). WL_UNSUPPORTED has these causes:
  // - more than 64 ranks
  // - more ranks of a process on a GPU than it runs at a time
  // - GPUs that don't reach one another, or memory that can't go to another process
  Code make(Gpu& gpu, Copies& copies, AllRanks& exchange, uint64_t bytes, wl_error_t* error);
  Code close(wl_error_t* error);

  CuAddress part(uint32_t rank) const { return parts_[rank]; }
  // The ranks of this process that share this rank's GPU form a grid, in which slot() is this
  // rank's index. A window that could not be made may have bytes() and no grid.
  bool hasGrid() const { return grid_ != nullptr; }
  Grid& grid() const { return *grid_; }
  uint32_t slot() const { return slot_; }
  // Returns the number of cores that each rank of the grid can run at a time, at most `most`.
  uint32_t coresAtOnce(uint32_t most, const GpuKernels& kernels) const {
    return std::min(most, kernels.blocksAtOnce / grid_->ranks());
  }

 private:
  // Like StatedWindow::state(). Also states if a copy of this rank may still run.
  Code state(AllRanks& exchange, Code code, wl_error_t* error);
  Code stateUnlessLost(AllRanks& exchange, Code code, wl_error_t* error);
  Code makeOwn(uint64_t bytes, wl_error_t* error);
  // Asks for the parts of other processes, on the first rank of this one.
  Code ask(AllRanks& exchange, wl_error_t* error);
  // Gives this rank's part to other processes, and takes the parts that were asked for.
  Code share(AllRanks& exchange, wl_error_t* error);
  // Holds the objects that the first ranks made, and tests access to parts of other GPUs and
  // processes.
  Code reach(wl_error_t* error);
  bool isHere(uint32_t rank) const { return beside_[rank] == beside_[rank_]; }
  // True if all ranks have stated that none of their copies may still run.
  bool isQuiet() const;

  Gpu* gpu_ = nullptr;
  Copies* copies_ = nullptr;
  uint32_t slot_ = 0;
  std::vector<uint32_t> beside_;   // for each rank, the first rank of its process
  std::vector<uint32_t> devices_;  // of each rank; kNobody: in another process
  uint32_t otherProcesses_ = 0;
  std::vector<CuAddress> parts_;
  OwnPart part_;
  Grid* grid_ = nullptr;
  // Parts of other processes' ranks, which the ranks of this one share; nullptr if there are none.
  std::vector<PeerPart>* peers_ = nullptr;
};

}  // namespace windlass::cuda
