// SPDX-License-Identifier: Apache-2.0
// A window in the memory of GPUs: a part for each rank on its own one, mapped once in the process,
// so that the kernels of all ranks reach it at the same address.
#pragma once

#include <vector>

#include "native/window/cuda/copies.h"
#include "native/window/cuda/grid.h"
#include "native/window/device.h"

namespace windlass::cuda {

class DeviceWindow {
 public:
  DeviceWindow() = default;
  DeviceWindow(const DeviceWindow&) = delete;
  DeviceWindow& operator=(const DeviceWindow&) = delete;

  // As RankDevice::makeWindow(). All ranks live in this process; this one has its
  // OffloadedOperation at `operation`. WL_UNSUPPORTED: more than 64 ranks, more on a GPU than it
  // runs at a time, or GPUs that don't reach one another.
  Code make(Gpu& gpu, Copies& copies, CuAddress operation, AllRanks& exchange, uint64_t bytes,
            wl_error_t* error);
  uint32_t culprit() const { return culprit_; }
  Code close(wl_error_t* error);

  CuAddress part(uint32_t rank) const { return statements_[rank].address; }
  uint64_t bytes() const { return bytes_; }  // of a part, in whole pages
  // The ranks that share this one's GPU, and its place among them.
  Grid& grid() const { return *grid_; }
  uint32_t slot() const { return slot_; }

 private:
  // What ranks tell one another.
  struct Statement {
    int32_t code;  // of this rank, so far
    uint32_t device;
    uint64_t bytes;
    uint64_t address;
    uint64_t operation;
    uint64_t grid;  // its name, where the rank is the first one on its GPU
  };

  // States this rank's part and `code`; WL_OK once all have stated theirs, and all are OK.
  Code state(AllRanks& exchange, Code code, wl_error_t* error);
  Code makeOwn(uint64_t bytes, wl_error_t* error);
  // Whether the GPU of each rank reaches this one's, as the driver has it.
  Code checkReach(wl_error_t* error) const;
  Code map(wl_error_t* error);
  Code makeGrid(wl_error_t* error);
  // Holds the grid that the first rank on this GPU has made, and tries the parts on other ones.
  Code reach(wl_error_t* error);
  Code tryPeer(uint32_t peer, wl_error_t* error);
  uint32_t firstOnDevice() const;
  // Each GPU of the group once, this rank's first.
  std::vector<uint32_t> devices() const;

  Gpu* gpu_ = nullptr;
  Copies* copies_ = nullptr;
  uint32_t rank_ = 0;
  uint32_t slot_ = 0;
  uint32_t culprit_ = kNobody;
  uint64_t bytes_ = 0;
  Statement own_ = {};
  std::vector<Statement> statements_;
  CuPhysical physical_ = 0;
  CuAddress address_ = 0;
  bool isReserved_ = false;
  bool hasPhysical_ = false;
  bool isMapped_ = false;
  Grid* grid_ = nullptr;
};

}  // namespace windlass::cuda
