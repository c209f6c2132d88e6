// SPDX-License-Identifier: Apache-2.0
// A window in the memory of Ascend devices. Each rank has a part on its own device. Every rank's
// kernels reach it, at an address of their own. Parts cross processes as shareable handles.
#pragma once

#include <vector>

#include "native/ascend/acl/acl.h"
#include "native/memory/stated_window.h"
#include "windlass/kernel.h"

namespace windlass::acl {

// Context of kernels, on the device. The toolkit's communication instructions compute a peer's
// address for `local` as windowsIn[peer] + (local - windowsIn[rankId]).
struct DeviceContext {
  uint64_t workSpace;
  uint64_t workSpaceBytes;
  uint32_t rankId;
  uint32_t rankCount;
  uint64_t windowBytes;
  uint64_t windowsIn[kMostDeviceRanks];
  uint64_t windowsOut[kMostDeviceRanks];
};
static_assert(offsetof(DeviceContext, rankId) == 16, "as the toolkit's kernels read it");
static_assert(offsetof(DeviceContext, rankCount) == 20, "as the toolkit's kernels read it");
static_assert(offsetof(DeviceContext, windowBytes) == 24, "as the toolkit's kernels read it");
static_assert(offsetof(DeviceContext, windowsIn) == 32, "as the toolkit's kernels read it");
static_assert(offsetof(DeviceContext, windowsOut) == 544, "as the toolkit's kernels read it");
static_assert(sizeof(DeviceContext) == 1056, "as the toolkit's kernels read it");

// Data that ranks of a window exchange.
struct DeviceStatement {
  int32_t code;  // result of this rank so far
  uint32_t driverDevice;
  int32_t process;
  uint64_t bytes;
  uint64_t handle;
  uint64_t address;  // in its process
};

class Device;

class DeviceWindow : public StatedWindow<DeviceStatement> {
 public:
  ~DeviceWindow() { close(nullptr); }

  // Collective: makes a window of `bytes`, the same on all ranks. It is zeroed before any peer
  // learns of it. If it fails on one rank, it fails on all and leaves nothing behind. The device is
  // used until close(). Throws std::bad_alloc, but only before its first exchange. WL_UNSUPPORTED
  // has these causes:
  // - more than 64 ranks
  // - devices that don't reach one another
  // - several processes of which some have several ranks, since a process imports a handle once
  Code make(Device& device, AllRanks& exchange, uint64_t bytes, wl_error_t* error);
  // Releases everything, even after failures, and returns the first failure. Call once no rank's
  // kernels access the window any more.
  Code close(wl_error_t* error);

  // Addresses for this rank's kernels.
  void* context() const { return context_; }
  void* part(uint32_t rank) const { return parts_[rank].address; }

 private:
  // Physical memory, as this process refers to it.
  struct Part {
    AclPhysical physical = nullptr;
    void* address = nullptr;
    bool isReserved = false;
    bool isMapped = false;
  };

  Code checkRanks(const AllRanks& exchange, wl_error_t* error) const;
  Code makeOwn(uint64_t bytes, wl_error_t* error);
  Code reach(uint32_t peer, wl_error_t* error);
  Code enableAccess(uint32_t peer, wl_error_t* error);
  // Maps the part's memory, and lets those devices access it.
  Code map(Part& part, const uint32_t* driverDevices, uint32_t count, wl_error_t* error);
  Code publishContext(wl_error_t* error);
  bool isHere(uint32_t rank) const {
    return statements_[rank].process == statements_[rank_].process;
  }

  Device* device_ = nullptr;
  std::vector<Part> parts_;
  void* context_ = nullptr;
};

}  // namespace windlass::acl
