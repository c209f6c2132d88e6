// SPDX-License-Identifier: Apache-2.0
// Ranks of one window that share a GPU. Their kernels wait for one another, so all must run at
// once. They form one cooperative grid, which the last rank to join launches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "native/device/cuda/gpu.h"
#include "windlass/offload.h"

namespace windlass::cuda {

class Grid {
 public:
  // Creates a grid for `ranks` of a group's `all` ranks. The calling rank holds it. Throws
  // std::bad_alloc.
  static Code make(Gpu& gpu, uint32_t ranks, uint32_t all, Grid** grid, wl_error_t* error);
  // Name by which the other ranks find the grid. hold() makes the calling rank a holder too. It
  // returns nullptr if the grid is gone.
  uint64_t name() const { return name_; }
  static Grid* hold(uint64_t name);
  // The last rank to leave releases the grid, even after failures, and returns the first failure.
  // No kernel of the grid may run, and mayCopy() must be false.
  Code leave(wl_error_t* error);

  uint32_t ranks() const { return ranks_; }

  // Adds rank `slot` with its operation to the next grid. All ranks pass the same number of cores,
  // and the same function or a copy of it. The last rank to join launches the grid.
  Code join(uint32_t slot, CuFunction function, uint32_t cores, const OffloadedOperation& given,
            wl_error_t* error);

  // Like join(), on the ranks' streams. The grid begins after all `marks`, and each rank's
  // stream continues after it. It is launched on its own stream. If the ranks' streams capture a
  // graph, it is launched on one of these, since a capturing stream can't be shared. `capture`: the
  // graph that all streams capture; 0: none.
  struct OnStream {
    CuStream stream;
    uint64_t capture;
    const std::vector<uint64_t>& marks;  // events
  };
  Code enqueue(uint32_t slot, uint32_t cores, CuAddress operation, const OnStream& own,
               wl_error_t* error);
  // Copies to the device before the next grid that captures nothing. `from` is pinned and must not
  // change until the copy is over.
  Code send(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error);
  // Sets *isIdle to true if no grid runs, or is going to run, on the grid's own stream.
  Code look(bool* isIdle, wl_error_t* error) const;

  // Blocks until the grid that the rank has joined has ended. WL_DEADLINE_EXCEEDED after limitNs,
  // also if another rank has not joined.
  Code await(uint32_t slot, const char* kernel, int64_t limitNs, wl_error_t* error);
  // True if a grid launched for that rank may still run, as cuda::mayRunOn() reports now.
  bool mayRunOn(uint32_t slot);
  // True if a launch failed and its arguments may still be copied.
  bool mayCopy() const { return mayCopy_; }
  // Prevents the launch of the grid that the rank has joined, if it has not been launched.
  void withdraw(uint32_t slot);

 private:
  Grid(Gpu& gpu, uint32_t ranks, uint32_t all)
      : gpu_(gpu), ranks_(ranks), hasPeersElsewhere_(ranks < all) {}
  // Adds the rank's operation to the next grid. *isLast: all ranks have joined. The caller holds
  // mutex_.
  Code come(uint32_t slot, CuAddress operation, bool* isLast, wl_error_t* error);
  // Launches all ranks' operations on the stream.
  Code launch(CuFunction function, uint32_t cores, CuStream stream, wl_error_t* error);
  // Records the result of the launch, and returns it.
  Code begun(Code code);
  Code launchOn(CuStream stream, uint32_t cores, const OnStream& last, wl_error_t* error);
  bool isLaunched(uint32_t slot) const { return launched_ >= joined_[slot]; }
  // Returns the known state of that grid. If several ranks ask at once, only one asks the driver,
  // and the others use its answer. Otherwise they would block one another.
  Called ask(uint64_t grid);

  Gpu& gpu_;
  const uint32_t ranks_;
  const bool hasPeersElsewhere_;  // some ranks are not in this grid
  uint64_t name_ = 0;
  CuStream stream_ = nullptr;
  // Operations of the next grid's ranks, copied to the device together: pinned memory and device
  // memory. Only a grid in progress reads them.
  OffloadedOperation* given_ = nullptr;
  CuAddress givenThere_ = 0;

  std::atomic<int64_t> askingNs_{0};  // when a rank began to ask; 0: nobody asks
  std::atomic<uint64_t> ended_{0};    // number of grids
  std::atomic<bool> mayCopy_{false};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint32_t waiting_ = 0;   // ranks that have joined the next grid
  OffloadedRanks joining_ = {};
  CuStream streams_[kMostDeviceRanks] = {};  // streams of these ranks
  // Events of the last grid on streams outside graphs, and of the last one in a graph. nullptr:
  // none.
  CuEvent over_[2] = {};
  uint64_t captured_ = 0;  // the graph of over_[1]
  std::atomic<uint64_t> launched_{0};  // number of grids
  uint64_t joined_[kMostDeviceRanks] = {};
  bool hasWithdrawn_[kMostDeviceRanks] = {};
  bool isBroken_ = false;  // nothing is launched any more
};

}  // namespace windlass::cuda
