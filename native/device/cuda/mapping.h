// SPDX-License-Identifier: Apache-2.0
// Physical memory of a GPU, mapped for the GPUs of this process.
#pragma once

#include <vector>

#include "native/device/cuda/gpu.h"

namespace windlass::cuda {

// First failure of several release calls. All calls are made, even after a failure.
struct Undone {
  Called first = {kCuOk, ""};

  void note(const Called& called) {
    if (first == kCuOk) first = called;
  }
};

class Mapping {
 public:
  // Maps the memory at `at`, which is reserved. Kernels of `devices` read and write it there. After
  // a failure, close() releases the rest.
  Code make(const Gpu& gpu, CuPhysical physical, CuAddress at, uint64_t bytes,
            const std::vector<uint32_t>& devices, wl_error_t* error);
  CuAddress address() const { return address_; }
  // Needs no current context.
  void close(const Cuda& cuda, Undone* undone);

 private:
  CuAddress address_ = 0;
  uint64_t bytes_ = 0;
  bool isMapped_ = false;
};

}  // namespace windlass::cuda
