// SPDX-License-Identifier: Apache-2.0
// Launches of kernels of libraries: each is an operation of all ranks, like the collectives.
#pragma once

#include "native/comm/comm.h"
#include "native/comm/kernel_library.h"

namespace windlass {

// One launch as its rank states it, held against the kernel's table.
struct LaunchCall {
  const LoadedKernel* kernel;
  const Argument* arguments;
  // A fingerprint for each of what is the same of it on every rank.
  const uint64_t* stated;
  uint64_t bytes;  // of its tensors
  int64_t deadlineNs;
  wl_error_t* error;
};

// "launch of shift on rank 2", which messages begin with.
class LaunchName {
 public:
  LaunchName(const LoadedKernel& kernel, uint32_t rank);
  const char* text() const { return text_; }

 private:
  char text_[kMostNameBytes + 40];
};

Code launch(Comm& comm, const LaunchCall& of);

}  // namespace windlass
