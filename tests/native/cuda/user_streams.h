// SPDX-License-Identifier: Apache-2.0
// A program's own streams and graphs on the stand-in for NVIDIA's driver, by the driver's calls.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "native/window/cuda/cuda.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {

// The calling thread's, on one device, whose primary context is current meanwhile.
class UserStream {
 public:
  explicit UserStream(int device) : device_(device) {
    enter();
    check(gpus::find<int (*)(Stream*, uint32_t)>("cuStreamCreate")(&stream_, 1));
    check(gpus::find<int (*)(Event*, uint32_t)>("cuEventCreate")(&event_, 2));
  }
  ~UserStream() {
    check(gpus::find<int (*)(Event)>("cuEventDestroy_v2")(event_));
    check(gpus::find<int (*)(Stream)>("cuStreamDestroy_v2")(stream_));
    leave();
  }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;

  uint64_t handle() const { return reinterpret_cast<uint64_t>(stream_); }
  void copy(void* to, const void* from, size_t bytes) {
    check(gpus::find<int (*)(uint64_t, uint64_t, size_t, Stream)>("cuMemcpyAsync")(
        reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, stream_));
  }
  // What this stream is given from now on comes after what that one has been.
  void follow(UserStream& other) {
    check(gpus::find<int (*)(Event, Stream)>("cuEventRecord")(other.event_, other.stream_));
    check(gpus::find<int (*)(Stream, Event, uint32_t)>("cuStreamWaitEvent")(stream_, other.event_,
                                                                            0));
  }
  void synchronize() { check(gpus::find<int (*)(Stream)>("cuStreamSynchronize")(stream_)); }
  void beginCapture(int mode = 0) {
    check(gpus::find<int (*)(Stream, int)>("cuStreamBeginCapture_v2")(stream_, mode));
  }
  // The graph, ready to be launched; nullptr where the capture came to nothing.
  void* endCapture() {
    void* graph = nullptr;
    void* made = nullptr;
    if (gpus::find<int (*)(Stream, void**)>("cuStreamEndCapture")(stream_, &graph) != 0)
      return nullptr;
    check(gpus::find<int (*)(void**, void*, uint64_t)>("cuGraphInstantiateWithFlags")(&made, graph,
                                                                                      0));
    dropGraph(graph);
    return made;
  }
  void launch(void* graph) {
    check(gpus::find<int (*)(void*, Stream)>("cuGraphLaunch")(graph, stream_));
  }
  static void dropGraph(void* graph) { check(gpus::find<int (*)(void*)>("cuGraphDestroy")(graph)); }

 private:
  using Stream = windlass::cuda::CuStream;
  using Event = windlass::cuda::CuEvent;

  static void check(int result) { EXPECT_EQ(result, 0); }
  void enter() {
    check(gpus::find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device_));
    check(gpus::find<int (*)(void*)>("cuCtxPushCurrent_v2")(context_));
  }
  void leave() {
    check(gpus::find<int (*)(void**)>("cuCtxPopCurrent_v2")(&context_));
    check(gpus::find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(device_));
  }

  const int device_;
  void* context_ = nullptr;
  Stream stream_ = nullptr;
  Event event_ = nullptr;
};

}  // namespace windlass_test
