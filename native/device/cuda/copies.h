// SPDX-License-Identifier: Apache-2.0
// Copies between a GPU and ordinary host memory, through pinned staging buffers. Thus no copy waits
// for a kernel, and a copy that hangs can't touch the caller's memory.
#pragma once

#include <vector>

#include "native/device/cuda/gpu.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class Copies {
 public:
  // A failure leaves nothing behind.
  Code open(const Gpu& gpu, wl_error_t* error);
  // Releases what open() took, even after failures, and returns the first failure.
  Code close(wl_error_t* error);

  // Each call blocks until its copy is over. If a copy does not end, it and all later calls return
  // WL_DEVICE.
  Code toDevice(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error);
  Code fromDevice(void* to, CuAddress from, uint64_t bytes, wl_error_t* error);
  Code fill(CuAddress to, uint64_t bytes, const RankDevice::Fill& fill, wl_error_t* error);
  Code take(CuAddress from, uint64_t bytes, const RankDevice::Take& take, wl_error_t* error);
  // Copies between any GPUs of the process.
  Code onDevices(CuAddress to, CuAddress from, uint64_t bytes, wl_error_t* error);
  Code copyRows(const std::vector<RankDevice::Rows>& rows, wl_error_t* error);
  Code zero(CuAddress to, uint64_t bytes, wl_error_t* error);

  // True if a copy may still run: it did not end in time, or the driver does not report its end. It
  // may access its memory at any time.
  bool isStuck() const { return isStuck_; }

 private:
  // One of two staging buffers. The host fills or empties one while the device copies the other.
  struct Stage {
    unsigned char* memory = nullptr;
    CuEvent event = nullptr;
    bool isBusy = false;
  };

  // Marks the staging buffer as busy after the copy was enqueued.
  Code begin(Stage& stage, const Called& copy, wl_error_t* error);
  Code await(Stage& stage, wl_error_t* error);
  // Waits for the work on the stream if `enqueued` is WL_OK.
  Code finish(Code enqueued, wl_error_t* error);
  // Returns `code`. After a failure, either nothing is in flight or isStuck() is true.
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
