// SPDX-License-Identifier: Apache-2.0
// Copies between a GPU and ordinary memory of the host, through pinned memory of our own, so that
// no copy waits for a kernel, and none that hangs still touches the caller's memory.
#pragma once

#include <vector>

#include "native/device/cuda/gpu.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class Copies {
 public:
  // A failure leaves nothing behind.
  Code open(const Gpu& gpu, wl_error_t* error);
  // Gives back what open() took, whatever fails, and tells the first failure.
  Code close(wl_error_t* error);

  // Each is over once it returns. WL_DEVICE where it does not end, and from then on.
  Code toDevice(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error);
  Code fromDevice(void* to, CuAddress from, uint64_t bytes, wl_error_t* error);
  Code fill(CuAddress to, uint64_t bytes, const RankDevice::Fill& fill, wl_error_t* error);
  Code take(CuAddress from, uint64_t bytes, const RankDevice::Take& take, wl_error_t* error);
  // Of any GPUs of the process.
  Code onDevices(CuAddress to, CuAddress from, uint64_t bytes, wl_error_t* error);
  Code copyRows(const std::vector<RankDevice::Rows>& rows, wl_error_t* error);
  Code zero(CuAddress to, uint64_t bytes, wl_error_t* error);

  // Whether one may run on, that did not end in time or of whose end the driver does not tell: it
  // may touch what it was given at any time.
  bool isStuck() const { return isStuck_; }

 private:
  // Of two, one is filled or emptied while the device copies the other one.
  struct Stage {
    unsigned char* memory = nullptr;
    CuEvent event = nullptr;
    bool isBusy = false;
  };

  Code openStage(Stage& stage, wl_error_t* error);
  // Notes what the stream has been given as the stage's.
  Code begin(Stage& stage, CuResult result, const char* call, wl_error_t* error);
  Code await(Stage& stage, wl_error_t* error);
  // Waits for what the stream was given, where `enqueued` is WL_OK.
  Code finish(Code enqueued, wl_error_t* error);
  // `code`; after a failure nothing is in flight, or isStuck().
  Code settled(Code code);
  Code enqueue(const RankDevice::Rows& rows, wl_error_t* error);
  Code ended(Code code, wl_error_t* error);
  Code checkUse(wl_error_t* error) const;

  const Gpu* gpu_ = nullptr;
  CuStream stream_ = nullptr;
  Stage stages_[2];
  bool isStuck_ = false;
};

}  // namespace windlass::cuda
