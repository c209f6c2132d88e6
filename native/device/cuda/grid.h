// SPDX-License-Identifier: Apache-2.0
// The ranks of one window that share a GPU. Their kernels wait for one another, so that all have to
// run at a time: they are one cooperative grid, which the last of them to come launches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "native/device/cuda/gpu.h"
#include "windlass/offload.h"

namespace windlass::cuda {

class Grid {
 public:
  // For `ranks` of a group's `all`, of which this one, whose thread this is, holds it from now on.
  // Throws std::bad_alloc.
  static Code make(Gpu& gpu, uint32_t ranks, uint32_t all, Grid** grid, wl_error_t* error);
  // By which the others find it; one of them holds it where it is still there, else nullptr.
  uint64_t name() const { return name_; }
  static Grid* hold(uint64_t name);
  // The last one to leave gives it back, whatever fails, and tells the first failure; no kernel of
  // it runs, and mayCopy() is false.
  Code leave(wl_error_t* error);

  uint32_t ranks() const { return ranks_; }

  // Has rank `slot`'s cores in the next grid, so many as all others have there, for what it is
  // given. The last one to join launches it: that function, of which each rank names the same or a
  // copy.
  Code join(uint32_t slot, CuFunction function, uint32_t cores, const OffloadedOperation& given,
            wl_error_t* error);

  // The same on streams of the ranks, native/device/cuda/grid_streams.cpp: the grid begins after
  // all `marks`, and each rank's stream goes on after it. `capture`: the graph that all their
  // streams capture; 0: none.
  struct OnStream {
    CuStream stream;
    uint64_t capture;
    const CuEvent* marks;
    uint32_t count;
  };
  Code enqueue(uint32_t slot, uint32_t cores, CuAddress operation, const OnStream& own,
               wl_error_t* error);
  // Fills the device's memory ahead of the next grid that captures nothing. `from` is pinned, and
  // stays as it is until that is over.
  Code send(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error);
  // Whether none runs that captures nothing, nor begins any more of itself.
  Code look(bool* isIdle, wl_error_t* error) const;

  // Until the grid has ended that the rank has joined; WL_TIMEOUT after limitNs, also where one of
  // the others has not come.
  Code await(uint32_t slot, const char* kernel, int64_t limitNs, wl_error_t* error);
  // Whether what it has launched for that rank may run on, as cuda::mayRunOn() has it, now.
  bool mayRunOn(uint32_t slot);
  // Whether a launch failed and what it was given may still be copied.
  bool mayCopy() const { return mayCopy_; }
  // Where the grid has not been launched that the rank has joined, it never will be.
  void withdraw(uint32_t slot);

 private:
  Grid(Gpu& gpu, uint32_t ranks, uint32_t all)
      : gpu_(gpu), ranks_(ranks), hasPeersElsewhere_(ranks < all) {}
  Code open(wl_error_t* error);
  Code end(wl_error_t* error);
  // Has the rank's operation in the next grid; whether all have theirs there. mutex_ is held.
  Code come(uint32_t slot, CuAddress operation, bool* isLast, wl_error_t* error);
  Code launchOn(CuStream stream, uint32_t cores, const OnStream& last, wl_error_t* error);
  bool isLaunched(uint32_t slot) const { return launched_ >= joined_[slot]; }
  // Whether that grid has ended, as far as is known: of ranks that ask at a time one asks the
  // driver, where they would wait for one another, and the others go by its answer.
  CuResult ask(uint64_t grid);

  Gpu& gpu_;
  const uint32_t ranks_;
  const bool hasPeersElsewhere_;  // on other GPUs
  uint64_t name_ = 0;
  CuStream stream_ = nullptr;
  // What the ranks' next grid is given, which goes to the device as one; no grid reads it that is
  // over. Pinned, and the device's.
  OffloadedOperation* given_ = nullptr;
  CuAddress givenThere_ = 0;

  std::atomic<int64_t> askingNs_{0};  // since when one asks; 0: nobody does
  std::atomic<uint64_t> ended_{0};    // grids
  std::atomic<bool> mayCopy_{false};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint32_t waiting_ = 0;   // those that have joined the next grid
  OffloadedRanks joining_ = {};
  CuStream streams_[kMostDeviceRanks] = {};  // of those
  // Of the last grid on streams that no graph holds, and of the last one that a graph does;
  // nullptr: there was none.
  CuEvent over_[2] = {};
  uint64_t captured_ = 0;  // that graph
  std::atomic<uint64_t> launched_{0};  // grids
  uint64_t joined_[kMostDeviceRanks] = {};
  bool hasWithdrawn_[kMostDeviceRanks] = {};
  bool isBroken_ = false;  // nothing is launched any more
};

}  // namespace windlass::cuda
