// SPDX-License-Identifier: Apache-2.0
// Launches of library kernels. Each is an operation of all ranks, like the collectives.
#pragma once

#include <atomic>

#include "native/core/comm.h"
#include "native/core/launch/stated_arguments.h"

namespace windlass {

// Receives the misuses of arguments by the kernel of one launch, and keeps the first one.
class LaunchMisuses : public Misuses {
 public:
  explicit LaunchMisuses(const LoadedKernel& kernel) : Misuses{take}, kernel_(kernel) {}

  bool isAny() const { return told_.load(std::memory_order_acquire) == kWritten; }
  // Call after the last thread has left the kernel.
  const char* text() const { return text_; }

 private:
  enum : uint32_t { kNone, kWriting, kWritten };
  static void take(const Misuses* to, const Misuse& misuse);
  void write(const Misuse& misuse);

  const LoadedKernel& kernel_;
  std::atomic<uint32_t> told_{kNone};
  char text_[512] = {};
};

// One launch as its rank states it, checked against the kernel's table.
struct LaunchCall {
  const LoadedKernel* kernel;
  const Argument* arguments;  // with an empty one after the last
  const LaunchMisuses* misuses;
  const StatedArguments* stated;
  uint64_t bytes;  // bytes of its tensors
  int64_t deadlineNs;
  wl_error_t* error;
};

// "launch of shift on rank 2", the start of messages.
struct LaunchName {
  LaunchName(const LoadedKernel& kernel, uint32_t rank);

  char text[kMostNameBytes + 40];
};

Code launch(Comm& comm, const LaunchCall& of);
// Runs a planned launch with the executor of its kernel. `call` is the plan. native/device defines
// this function, because the library's kernels may run on devices.
Code runLaunch(Comm& comm, const LaunchCall& of, Call* call);

}  // namespace windlass
