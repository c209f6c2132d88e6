// SPDX-License-Identifier: Apache-2.0
// Physical memory of a GPU, where the GPUs of this process reach it.
#pragma once

#include <vector>

#include "native/device/cuda/gpu.h"

namespace windlass::cuda {

// What fails first, where the rest is given back all the same.
struct Undone {
  CuResult result = kCuOk;
  const char* call = "";

  void note(CuResult came, const char* of) {
    if (result == kCuOk && came != kCuOk) *this = {came, of};
  }
};

class Mapping {
 public:
  // Maps it at `at`, which is reserved, or, where that is 0, at addresses of its own; kernels of
  // those `devices` read and write it there. A failure leaves what close() gives back.
  Code make(const Gpu& gpu, CuPhysical physical, CuAddress at, uint64_t bytes,
            const std::vector<uint32_t>& devices, wl_error_t* error);
  CuAddress address() const { return address_; }
  // Takes no context.
  void close(const Cuda& cuda, Undone* undone);

 private:
  CuAddress address_ = 0;
  uint64_t bytes_ = 0;
  bool isReserved_ = false;
  bool isMapped_ = false;
};

}  // namespace windlass::cuda
