// SPDX-License-Identifier: Apache-2.0
// What a rank's device takes of a launch of a library's kernel: its arguments. Tensors that lie on
// it are used there; others go to the rank's window and, where the kernel writes them, back.
#pragma once

#include <vector>

#include "native/core/launch/kernel_library.h"
#include "native/memory/device.h"

namespace windlass {

class OffloadedLaunch {
 public:
  // The arguments, and one of nothing behind them, last as long as this; `misuses` is told what the
  // device's cores do that they don't allow.
  OffloadedLaunch(const LoadedKernel& kernel, const Argument* arguments, const Misuses& misuses)
      : kernel_(kernel), arguments_(arguments), misuses_(misuses) {}

  // The library's kernels for devices, and the place of this one among them.
  const void* image() const { return kernel_.image; }
  uint32_t index() const { return kernel_.index; }
  const char* name() const { return kernel_.entry->name; }

  // Finds where arguments lie. Tensors that all ranks have at one place of a window come first in
  // what is staged, so that each is at one offset of it on every rank. Throws std::bad_alloc.
  Code find(RankDevice& device, uint32_t rank, uint32_t ranks, wl_error_t* error);
  uint64_t stagedBytes() const { return stagedBytes_; }
  // An OffloadedCall with what follows it, once name() has said where that is.
  void* call() { return call_.data(); }
  uint64_t callBytes() const { return call_.size(); }

  // Where devices have what is staged of each rank, this rank's call, and its tiles.
  void name(const std::vector<uint64_t>& staged, uint64_t call, uint64_t tiles);
  // Copies what is staged to this rank's, which is `staged`.
  Code send(RankDevice& device, uint64_t staged, wl_error_t* error) const;
  // Copies what the kernel has written of it back; and tells of misuses, as `call` has them.
  Code fetch(RankDevice& device, uint64_t staged, uint64_t call, wl_error_t* error) const;

 private:
  // A tensor that doesn't stay where it lies.
  struct Staged {
    uint32_t argument;
    uint64_t from;  // the rank's own
    uint64_t bytes;
    uint64_t at;    // in what is staged
    bool isPart;    // of another one, which is copied
    bool isOnDevice;
  };
  const ArgumentEntry& entry(uint32_t argument) const { return kernel_.entry->arguments[argument]; }
  bool isDistributed(uint32_t argument) const {
    return entry(argument).kind == ArgumentEntry::kDistributed;
  }
  Code place(wl_error_t* error);
  Code copy(RankDevice& device, const Staged& each, uint64_t staged, bool back,
            wl_error_t* error) const;
  void tell(const Misuse& misuse) const;

  const LoadedKernel& kernel_;
  const Argument* const arguments_;
  const Misuses& misuses_;
  std::vector<Staged> staged_;
  uint64_t stagedBytes_ = 0;
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  // An OffloadedCall, the arguments, and for each tensor of a window that is staged where each
  // rank's part is.
  std::vector<unsigned char> call_;
};

}  // namespace windlass
