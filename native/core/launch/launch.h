// SPDX-License-Identifier: Apache-2.0
// Launches of kernels of libraries: each is an operation of all ranks, like the collectives.
#pragma once

#include <atomic>

#include "native/core/comm.h"
#include "native/core/launch/kernel_library.h"
#include "native/core/launch/stated_arguments.h"

namespace windlass {

// What the kernel of one launch does that its arguments don't allow: the first such thing.
class LaunchMisuses : public Misuses {
 public:
  explicit LaunchMisuses(const LoadedKernel& kernel) : Misuses{take}, kernel_(kernel) {}

  bool isAny() const { return told_.load(std::memory_order_acquire) == kWritten; }
  // Once no thread runs the kernel.
  const char* text() const { return text_; }

 private:
  enum : uint32_t { kNone, kWriting, kWritten };
  static void take(const Misuses* to, const Misuse& misuse);
  void write(const Misuse& misuse);

  const LoadedKernel& kernel_;
  std::atomic<uint32_t> told_{kNone};
  char text_[512] = {};
};

// One launch as its rank states it, held against the kernel's table.
struct LaunchCall {
  const LoadedKernel* kernel;
  const Argument* arguments;  // and one behind the last, of nothing
  const LaunchMisuses* misuses;
  const StatedArguments* stated;
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
