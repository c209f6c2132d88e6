// SPDX-License-Identifier: Apache-2.0
// A window in the memory of Ascend devices: a part on each rank's own device, which the kernels of
// every rank reach at an address of their own. Parts cross processes by shareable handles.
#pragma once

#include <vector>

#include "native/ascend/acl/device.h"
#include "native/memory/device.h"
#include "windlass/kernel.h"

namespace windlass::acl {

// What kernels are given, on the device: the toolkit's communication instructions take a peer's
// address of what lies at `local` to be windowsIn[peer] + (local - windowsIn[rankId]).
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

class DeviceWindow {
 public:
  DeviceWindow() = default;
  ~DeviceWindow() { close(nullptr); }
  DeviceWindow(const DeviceWindow&) = delete;
  DeviceWindow& operator=(const DeviceWindow&) = delete;

  // Collective: `bytes`, the same on all ranks, zeroed before any peer learns of them. Where it
  // fails on one rank it fails on all, and leaves nothing behind. WL_UNSUPPORTED: more than 64
  // ranks; devices that don't reach one another; several ranks of one process among several
  // processes, since a process imports a handle once. The device is used until the window is
  // closed. Throws std::bad_alloc, before its first exchange alone.
  Code make(Device& device, AllRanks& exchange, uint64_t bytes, wl_error_t* error);
  // The rank that a failure of make() began with; kNobody: what ranks tell one another ended it.
  uint32_t culprit() const { return culprit_; }
  // Gives everything back, whatever fails, and tells the first failure. Call once no rank's kernels
  // touch the window any more.
  Code close(wl_error_t* error);

  // Addresses for this rank's kernels.
  void* context() const { return context_; }
  void* part(uint32_t rank) const { return parts_[rank].address; }
  uint64_t bytes() const { return bytes_; }  // of a part, in whole pages

 private:
  // What ranks tell one another.
  struct Statement {
    int32_t code;  // of this rank, so far
    uint32_t driverDevice;
    int32_t process;
    uint64_t bytes;
    uint64_t handle;
    uint64_t address;  // in its process
  };
  // Physical memory as this process has it.
  struct Part {
    AclPhysical physical = nullptr;
    void* address = nullptr;
    bool isReserved = false;
    bool isMapped = false;
  };

  // States this rank's part and `code`; WL_OK once all have stated theirs, and all are OK.
  Code state(AllRanks& exchange, Code code, wl_error_t* error);
  Code checkRanks(const AllRanks& exchange, wl_error_t* error) const;
  Code makeOwn(uint64_t bytes, wl_error_t* error);
  Code reach(uint32_t peer, wl_error_t* error);
  Code enableAccess(uint32_t peer, wl_error_t* error);
  // Has an address for the part's memory, and lets those devices access it.
  Code map(Part& part, const uint32_t* driverDevices, uint32_t count, wl_error_t* error);
  Code publishContext(wl_error_t* error);
  bool isHere(uint32_t rank) const {
    return statements_[rank].process == statements_[rank_].process;
  }

  Device* device_ = nullptr;
  uint32_t rank_ = 0;
  uint32_t culprit_ = kNobody;
  uint64_t bytes_ = 0;
  Statement own_ = {};
  std::vector<Statement> statements_;
  std::vector<Part> parts_;
  void* context_ = nullptr;
};

}  // namespace windlass::acl
