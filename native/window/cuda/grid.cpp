// SPDX-License-Identifier: Apache-2.0
#include "native/window/cuda/grid.h"

#include <chrono>
#include <memory>

#include "native/base/clock.h"
#include "native/window/cuda/by_name.h"
#include "native/window/cuda/polling.h"

namespace windlass::cuda {
namespace {

ByName<Grid> grids;

}  // namespace

Code Grid::make(Gpu& gpu, uint32_t ranks, uint32_t all, Grid** grid, wl_error_t* error) {
  std::unique_ptr<Grid> made(new Grid(gpu, ranks, all));
  const Code code = gpu.check(gpu.cuda().cuStreamCreate(&made->stream_, kStreamNonBlocking),
                              "cuStreamCreate", error);
  if (code != WL_OK) return code;
  try {
    made->name_ = grids.add(made.get());
  } catch (...) {
    made->end(nullptr);
    throw;
  }
  *grid = made.release();
  return WL_OK;
}

Grid* Grid::hold(uint64_t name) {
  return grids.hold(name);
}

Code Grid::leave(wl_error_t* error) {
  if (!grids.leave(name_)) return WL_OK;
  const std::unique_ptr<Grid> own(this);
  return end(error);
}

Code Grid::end(wl_error_t* error) {
  const Cuda& cuda = gpu_.cuda();
  Code code = gpu_.check(cuda.cuStreamDestroy(stream_), "cuStreamDestroy", error);
  for (const CuEvent over : over_) {
    if (over == nullptr) continue;
    gpu_.forget(over);
    const Code dropped =
        gpu_.check(cuda.cuEventDestroy(over), "cuEventDestroy", code == WL_OK ? error : nullptr);
    if (code == WL_OK) code = dropped;
  }
  return code;
}

Code Grid::come(uint32_t slot, CuAddress operation, bool* isLast, wl_error_t* error) {
  if (isBroken_) {
    return fail(error, WL_DEVICE, "device %u: another rank that shares it has given up",
                gpu_.number());
  }
  joined_[slot] = launched_ + 1;
  joining_.operation[slot] = reinterpret_cast<const OffloadedOperation*>(operation);
  *isLast = ++waiting_ == ranks_;
  return WL_OK;
}

Code Grid::join(uint32_t slot, CuFunction function, uint32_t cores, CuAddress operation,
                wl_error_t* error) {
  const WatchedLock lock(mutex_);
  bool isLast = false;
  if (Code code = come(slot, operation, &isLast, error); code != WL_OK || !isLast) return code;
  void* arguments[] = {&joining_, &cores};
  Code code = hasPeersElsewhere_ ? gpu_.followLast(stream_, nullptr, error) : WL_OK;
  if (code == WL_OK) {
    code =
        gpu_.check(gpu_.cuda().cuLaunchCooperativeKernel(function, ranks_ * cores, 1, 1,
                                                         kCudaThreads, 1, 1, 0, stream_, arguments),
                   "cuLaunchCooperativeKernel", error);
  }
  isBroken_ = code != WL_OK;
  if (isBroken_) return code;
  waiting_ = 0;
  ++launched_;
  changed_.notify_all();
  return WL_OK;
}

Code Grid::await(uint32_t slot, const char* kernel, int64_t limitNs, wl_error_t* error) {
  const int64_t endNs = clockNs() + limitNs;
  bool isDecided = false;
  bool hasBegun = false;
  uint32_t arrived = 0;
  {
    // The last one to come may not come back from its launch.
    const WatchedCalls::Scope waiting(WatchedCalls::kOfOthers);
    std::unique_lock<std::mutex> lock(mutex_);
    isDecided = changed_.wait_for(lock, std::chrono::nanoseconds(limitNs), [&] {
      return isLaunched(slot) || hasWithdrawn_[slot];
    });
    hasBegun = isLaunched(slot);
    arrived = waiting_;
  }
  if (!isDecided) {
    return fail(error, WL_TIMEOUT, "%s did not begin on device %u: %u of its %u ranks have come",
                kernel, gpu_.number(), arrived, ranks_);
  }
  if (!hasBegun)
    return fail(error, WL_DEVICE, "%s never began on device %u", kernel, gpu_.number());
  const Code code = awaitStream(gpu_, stream_, endNs - clockNs(), error);
  if (code != WL_TIMEOUT) return code;
  return fail(error, WL_TIMEOUT, "%s did not end on device %u within %lld ms", kernel,
              gpu_.number(), static_cast<long long>(limitNs / 1'000'000));
}

bool Grid::mayRunOn(uint32_t slot) {
  {
    const WatchedLock lock(mutex_);
    if (!isLaunched(slot)) return false;
  }
  return cuda::mayRunOn(gpu_, stream_, 0);
}

void Grid::withdraw(uint32_t slot) {
  const WatchedLock lock(mutex_);
  if (isLaunched(slot)) return;
  isBroken_ = true;
  hasWithdrawn_[slot] = true;
}

}  // namespace windlass::cuda
