// SPDX-License-Identifier: Apache-2.0
// A program's own streams and graphs on GPUs, by the driver's calls.
#pragma once

#include "native/device/cuda/cuda.h"
#include "tests/native/cuda/driver.h"

namespace windlass_test {

// The calling thread's, on one device, whose primary context is current meanwhile.
class UserStream {
 public:
  explicit UserStream(int device) : current_(device) {
    gpus::check(gpus::find<int (*)(Stream*, uint32_t)>("cuStreamCreate")(&stream_, 1));
    gpus::check(gpus::find<int (*)(Event*, uint32_t)>("cuEventCreate")(&event_, 2));
  }
  ~UserStream() {
    gpus::check(gpus::find<int (*)(Event)>("cuEventDestroy_v2")(event_));
    gpus::check(gpus::find<int (*)(Stream)>("cuStreamDestroy_v2")(stream_));
  }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;

  uint64_t handle() const { return reinterpret_cast<uint64_t>(stream_); }
  void copy(void* to, const void* from, size_t bytes) {
    gpus::check(gpus::find<int (*)(uint64_t, uint64_t, size_t, Stream)>("cuMemcpyAsync")(
        reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, stream_));
  }
  // Orders the later work of this stream after the earlier work of the other one.
  void follow(UserStream& other) {
    gpus::check(gpus::find<int (*)(Event, Stream)>("cuEventRecord")(other.event_, other.stream_));
    gpus::check(gpus::find<int (*)(Stream, Event, uint32_t)>("cuStreamWaitEvent")(
        stream_, other.event_, 0));
  }
  void synchronize() { gpus::check(gpus::find<int (*)(Stream)>("cuStreamSynchronize")(stream_)); }
  void beginCapture(int mode = 0) {
    gpus::check(gpus::find<int (*)(Stream, int)>("cuStreamBeginCapture_v2")(stream_, mode));
  }
  // The graph, ready to be launched; nullptr where the capture came to nothing.
  void* endCapture() {
    void* graph = nullptr;
    void* made = nullptr;
    if (gpus::find<int (*)(Stream, void**)>("cuStreamEndCapture")(stream_, &graph) != 0)
      return nullptr;
    gpus::check(gpus::find<int (*)(void**, void*, uint64_t)>("cuGraphInstantiateWithFlags")(
        &made, graph, 0));
    gpus::check(gpus::find<int (*)(void*)>("cuGraphDestroy")(graph));
    return made;
  }
  void launch(void* graph) {
    gpus::check(gpus::find<int (*)(void*, Stream)>("cuGraphLaunch")(graph, stream_));
  }
  static void dropGraph(void* graph) {
    gpus::check(gpus::find<int (*)(void*)>("cuGraphExecDestroy")(graph));
  }

 private:
  using Stream = windlass::cuda::CuStream;
  using Event = windlass::cuda::CuEvent;

  const gpus::Current current_;
  Stream stream_ = nullptr;
  Event event_ = nullptr;
};

}  // namespace windlass_test
