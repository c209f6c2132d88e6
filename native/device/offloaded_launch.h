// SPDX-License-Identifier: Apache-2.0
// Arguments of a library's kernel that a rank's device launches. Kernels access tensors on that
// device in place. The host copies other tensors to the rank's window and, if the kernel writes
// them, back.
#pragma once

#include <vector>

#include "native/core/launch/kernel_library.h"
#include "native/device/statements.h"

namespace windlass {

class OffloadedLaunch {
 public:
  // The arguments, followed by an empty one, must outlive this object. `misuses` receives breaches
  // of the arguments' rules by the device's cores.
  OffloadedLaunch(const LoadedKernel& kernel, const Argument* arguments, const Misuses& misuses)
      : kernel_(kernel), arguments_(arguments), misuses_(misuses) {}

  // The library's kernels for devices, and the index of this one among them.
  const void* image() const { return kernel_.image; }
  uint32_t index() const { return kernel_.index; }
  const char* name() const { return kernel_.entry->name; }

  // Finds the locations of the arguments. Tensors at the same window address on all ranks come
  // first in the staged data, so that each has the same offset on every rank. Throws
  // std::bad_alloc.
  Code find(RankDevice& device, uint32_t rank, uint32_t ranks, wl_error_t* error);
  uint64_t stagedBytes() const { return stagedBytes_; }
  // An OffloadedCall and the data that follows it. name() fills in addresses.
  void* call() { return call_.data(); }
  uint64_t callBytes() const { return call_.size(); }

  // Fills in addresses for devices from the layouts: `in` is a rank's staged data. `parts` and
  // `out` of this rank are the call and the tiles.
  void name(const std::vector<DeviceLayout>& layouts);
  // Copies the tensors into this rank's staged data.
  Code send(RankDevice& device, const DeviceLayout& own, wl_error_t* error) const;
  // Copies back the tensors that the kernel has written, and reports misuses that the device
  // recorded in the call.
  Code fetch(RankDevice& device, const DeviceLayout& own, wl_error_t* error) const;

 private:
  // A tensor that kernels don't access in place.
  struct Staged {
    uint32_t argument;
    uint64_t from;  // address on the rank
    uint64_t bytes;
    uint64_t at;    // offset in the staged data
    bool isPart;    // part of another tensor, which is copied
    RankDevice::Lies lies;
  };
  const ArgumentEntry& entry(uint32_t argument) const { return kernel_.entry->arguments[argument]; }
  bool isDistributed(uint32_t argument) const {
    return entry(argument).kind == ArgumentEntry::kDistributed;
  }
  Code place(wl_error_t* error);
  void tell(const Misuse& misuse) const;

  const LoadedKernel& kernel_;
  const Argument* const arguments_;
  const Misuses& misuses_;
  std::vector<Staged> staged_;
  uint64_t stagedBytes_ = 0;
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  // An OffloadedCall, the arguments, and, for each staged tensor of a window, the address of every
  // rank's part.
  std::vector<unsigned char> call_;
};

}  // namespace windlass
