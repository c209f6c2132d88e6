// SPDX-License-Identifier: Apache-2.0
// Grids on the streams of their ranks. A grid is launched on its own stream. If the ranks' streams
// capture a graph, it is launched on one of these, since a capturing stream can't be shared.
#include "native/device/cuda/grid.h"

namespace windlass::cuda {

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
