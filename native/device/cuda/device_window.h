// SPDX-License-Identifier: Apache-2.0
// A window for kernels in GPU memory. Each rank has a part on its own GPU. The ranks of a process
// share the parts as the process maps them, so that all their kernels use the same addresses.
#pragma once

#include <algorithm>
#include <vector>

#include "native/device/cuda/grid.h"
#include "native/device/cuda/window_parts.h"
#include "native/memory/stated_window.h"

namespace windlass::cuda {

class CudaRankDevice;

// Data that ranks of a window exchange.
struct DeviceStatement {
  int32_t code;    // result of this rank so far
  uint32_t keeps;  // 1: a copy of this rank may still run, so no rank releases its part
  uint32_t device;
  uint64_t bytes;
  uint64_t parts;            // name of its process's parts, if the rank is the first there
  uint64_t grid;             // its name, if the rank is the first of its process on its GPU
  DeviceParts::Offer offer;  // its part, for other processes
};

class DeviceWindow : public StatedWindow<DeviceStatement> {
 public:
  // Same as RankDevice::makeWindow(). WL_UNSUPPORTED has these causes:
  // - more than 64 ranks
  // - more ranks of a process on a GPU than it runs at a time
  // - GPUs that don't reach one another, or memory that can't go to another process
  Code make(CudaRankDevice& device, AllRanks& exchange, uint64_t bytes, wl_error_t* error);
  Code close(wl_error_t* error);

  void* part(uint32_t rank) const {
    return static_cast<unsigned char*>(parts_->base()) + rank * parts_->stride();
  }
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
  // Reserves the parts of this process, on its first rank, and makes the grid of a GPU.
  Code reserve(uint64_t bytes, wl_error_t* error);
  // Holds the objects that the first ranks made, and makes this rank's part.
  Code makeOwn(wl_error_t* error);
  // True if all ranks have stated that none of their copies may still run.
  bool isQuiet() const;

  CudaRankDevice* device_ = nullptr;
  uint32_t slot_ = 0;
  std::vector<uint32_t> beside_;   // for each rank, the first rank of its process
  std::vector<uint32_t> devices_;  // of each rank; kNobody: in another process
  uint32_t otherProcesses_ = 0;
  WindowParts* parts_ = nullptr;
  Grid* grid_ = nullptr;
};

}  // namespace windlass::cuda
