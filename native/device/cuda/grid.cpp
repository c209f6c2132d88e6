// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/grid.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "native/base/clock.h"
#include "native/base/yielding.h"
#include "native/device/cuda/by_name.h"
#include "native/device/cuda/polling.h"

namespace windlass::cuda {
namespace {

ByName<Grid> grids;
// Time for the driver to say if a grid has ended.
constexpr int64_t kAnswerNs = 1'000'000;
// Time that the copy of a grid's arguments has to end after its launch failed.
constexpr int64_t kCopyNs = 1'000'000'000;

}  // namespace

Code Grid::make(Gpu& gpu, uint32_t ranks, uint32_t all, Grid** grid, wl_error_t* error) {
  std::unique_ptr<Grid> made(new Grid(gpu, ranks, all));
  made->name_ = grids.add(made.get());
  Grid* const own = made.release();
  const uint64_t bytes = ranks * sizeof *own->given_;
  Code code = gpu.makeStream(&own->stream_, error);
  if (code == WL_OK) code = gpu.makeMemory(&own->givenThere_, bytes, error);
  if (code == WL_OK) code = gpu.makePinned(&own->given_, bytes, 0, error);
  if (code == WL_OK) *grid = own;
  if (code != WL_OK) own->leave(nullptr);
  return code;
}

Grid* Grid::hold(uint64_t name) {
  return grids.hold(name);
}

Code Grid::leave(wl_error_t* error) {
  if (!grids.leave(name_)) return WL_OK;
  const std::unique_ptr<Grid> own(this);
  GivesBack undo(gpu_, error);
  undo.stream(stream_);
  for (const CuEvent over : over_) {
    if (over != nullptr) gpu_.forget(over);
    undo.event(over);
  }
  undo.pinned(given_);
  undo.memory(givenThere_);
  return undo.code;
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

Code Grid::join(uint32_t slot, CuFunction function, uint32_t cores,
                const OffloadedOperation& given, wl_error_t* error) {
  const auto lock = WatchedCalls::lock(mutex_);
  const uint32_t place = waiting_;
  bool isLast = false;
  if (Code code = come(slot, givenThere_ + place * sizeof given, &isLast, error); code != WL_OK)
    return code;
  given_[place] = given;
  if (!isLast) return WL_OK;
  Code code = send(givenThere_, given_, ranks_ * sizeof given, error);
  if (code == WL_OK && hasPeersElsewhere_) code = gpu_.followLast(stream_, nullptr, error);
  if (code == WL_OK) code = launch(function, cores, stream_, error);
  if (code != WL_OK) mayCopy_ = cuda::mayRunOn(gpu_, stream_, kCopyNs);
  return begun(code);
}

Code Grid::launch(CuFunction function, uint32_t cores, CuStream stream, wl_error_t* error) {
  void* arguments[] = {&joining_, &cores};
  return gpu_.check(gpu_.cuda().cuLaunchCooperativeKernel(function, ranks_ * cores, 1, 1,
                                                          kCudaThreads, 1, 1, 0, stream, arguments),
                    error);
}

Code Grid::begun(Code code) {
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
  uint64_t own = 0;
  {
    // The last rank to join may hang in its launch.
    const WatchedCalls::Scope waiting(WatchedCalls::kOfOthers);
    yieldUntil([&] { return isLaunched(slot); }, std::min(limitNs, kYieldsNs));
    std::unique_lock<std::mutex> lock(mutex_);
    isDecided = changed_.wait_for(lock, std::chrono::nanoseconds(endNs - clockNs()), [&] {
      return isLaunched(slot) || hasWithdrawn_[slot];
    });
    hasBegun = isLaunched(slot);
    arrived = waiting_;
    own = joined_[slot];
  }
  if (!isDecided) {
    return fail(error, WL_DEADLINE_EXCEEDED,
                "%s did not begin on device %u: %u of its %u ranks have come",
                kernel, gpu_.number(), arrived, ranks_);
  }
  if (!hasBegun)
    return fail(error, WL_DEVICE, "%s never began on device %u", kernel, gpu_.number());
  const Code code = poll(gpu_, [&] { return ask(own); }, endNs - clockNs(), error);
  if (code != WL_DEADLINE_EXCEEDED) return code;
  return fail(error, WL_DEADLINE_EXCEEDED, "%s did not end on device %u within %lld ms", kernel,
              gpu_.number(), static_cast<long long>(limitNs / 1'000'000));
}

Called Grid::ask(uint64_t grid) {
  if (ended_.load(std::memory_order_acquire) >= grid) return {kCuOk, ""};
  const int64_t now = clockNs();
  int64_t since = 0;
  const bool isFirst = askingNs_.compare_exchange_strong(since, now);
  // If that query hangs, the other ranks ask themselves.
  if (!isFirst && now - since < kAnswerNs) return {kCuNotReady, ""};
  const Called result = gpu_.cuda().cuStreamQuery(stream_);
  if (result == kCuOk) ended_.store(grid, std::memory_order_release);
  if (isFirst) askingNs_ = 0;
  return result;
}

bool Grid::mayRunOn(uint32_t slot) {
  {
    const auto lock = WatchedCalls::lock(mutex_);
    if (!isLaunched(slot)) return false;
  }
  return cuda::mayRunOn(gpu_, stream_, 0);
}

void Grid::withdraw(uint32_t slot) {
  const auto lock = WatchedCalls::lock(mutex_);
  if (isLaunched(slot)) return;
  isBroken_ = true;
  hasWithdrawn_[slot] = true;
}

Code Grid::send(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error) {
  return gpu_.check(gpu_.cuda().cuMemcpyHtoDAsync(to, from, bytes, stream_), error);
}

Code Grid::look(bool* isIdle, wl_error_t* error) const {
  return gpu_.checkEnd(gpu_.cuda().cuStreamQuery(stream_), isIdle, error);
}

Code Grid::enqueue(uint32_t slot, uint32_t cores, CuAddress operation, const OnStream& own,
                   wl_error_t* error) {
  const auto lock = WatchedCalls::lock(mutex_);
  bool isLast = false;
  if (Code code = come(slot, operation, &isLast, error); code != WL_OK) return code;
  streams_[slot] = own.stream;
  if (!isLast) return WL_OK;
  return begun(launchOn(own.capture == 0 ? stream_ : own.stream, cores, own, error));
}

Code Grid::launchOn(CuStream stream, uint32_t cores, const OnStream& last, wl_error_t* error) {
  const Cuda& cuda = gpu_.cuda();
  Code code = WL_OK;
  CuEvent& over = over_[last.capture == 0 ? 0 : 1];
  if (over == nullptr) code = gpu_.makeEvent(&over, error);
  const auto follow = [&](CuStream follower, CuEvent event) {
    if (code == WL_OK) code = gpu_.check(cuda.cuStreamWaitEvent(follower, event, 0), error);
  };
  for (const uint64_t mark : last.marks) follow(stream, reinterpret_cast<CuEvent>(mark));
  // The stream orders grids that capture nothing.
  if (last.capture != 0 && last.capture == captured_) follow(stream, over);
  if (code == WL_OK && last.capture == 0 && hasPeersElsewhere_)
    code = gpu_.followLast(stream, over, error);
  if (code != WL_OK) return code;
  code = launch(gpu_.own().function, cores, stream, error);
  if (code == WL_OK) code = gpu_.check(cuda.cuEventRecord(over, stream), error);
  if (code == WL_OK && last.capture == 0 && hasPeersElsewhere_) gpu_.setLast(over);
  if (last.capture != 0) captured_ = last.capture;
  for (uint32_t slot = 0; slot < ranks_; ++slot)
    if (streams_[slot] != stream) follow(streams_[slot], over);
  return code;
}

}  // namespace windlass::cuda
