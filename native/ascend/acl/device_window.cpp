// SPDX-License-Identifier: Apache-2.0
#include "native/ascend/acl/device_window.h"

#include <unistd.h>

#include <algorithm>

#include "native/ascend/acl/device.h"
#include "native/base/clock.h"

namespace windlass::acl {
namespace {

// Time limit for access to a peer's device, which the system grants some time after the request.
constexpr int64_t kAccessLimitNs = 3'000'000'000;
constexpr uint32_t kAccessLookUs = 1000;

}  // namespace

Code DeviceWindow::make(Device& device, AllRanks& exchange, uint64_t bytes, wl_error_t* error) {
  if (device_ != nullptr) return fail(error, WL_INVALID_ARGUMENT, "the window is made already");
  if (Code code = begin(exchange, bytes, error); code != WL_OK) return code;
  const uint32_t ranks = exchange.ranks();
  parts_.assign(ranks, Part());
  device_ = &device;
  own_.driverDevice = device.driverNumber();
  // States the result of each step to all ranks, so that nobody waits for a rank whose step failed.
  Code code = device.check(device.acl().aclrtDeviceGetBareTgid(&own_.process),
                           "aclrtDeviceGetBareTgid", error);
  code = state(exchange, code, error);
  if (code == WL_OK) {
    code = checkRanks(exchange, error);
    if (code != WL_OK) faultyRank_ = rank_;
    // All ranks refuse this alike, without an exchange.
    if (code == WL_OK) code = state(exchange, makeOwn(bytes, error), error);
  }
  if (code == WL_OK) {
    code = checkBytes(error);
    for (uint32_t step = 1; step < ranks && code == WL_OK; ++step)
      code = reach((rank_ + step) % ranks, error);
    if (code == WL_OK) code = publishContext(error);
    // This exchange also ensures that no kernel writes to a peer that has not mapped all parts yet.
    code = state(exchange, code, error);
  }
  if (code != WL_OK) close(nullptr);
  return code;
}

Code DeviceWindow::checkRanks(const AllRanks& exchange, wl_error_t* error) const {
  bool sharesOne = false;
  bool isOne = true;
  for (uint32_t a = 0; a < exchange.ranks(); ++a) {
    isOne = isOne && statements_[a].process == statements_[0].process;
    for (uint32_t b = 0; b < a; ++b)
      sharesOne = sharesOne || statements_[a].process == statements_[b].process;
  }
  if (isOne || !sharesOne) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "ranks of several processes, of which one has several: a process imports a peer's "
              "memory once; start one process for each rank, or one for all");
}

Code DeviceWindow::makeOwn(uint64_t bytes, wl_error_t* error) {
  const Acl& acl = device_->acl();
  const AclLocation location = {static_cast<uint32_t>(device_->number()), kLocationDevice};
  AclPhysicalProperties properties = {kHandleTypeNone, kAllocationPinned, kMemoryHuge, location, 0};
  size_t page = 0;
  Code code = device_->check(
      acl.aclrtMemGetAllocationGranularity(&properties, kGranularityMinimum, &page),
      "aclrtMemGetAllocationGranularity", error);
  if (code == WL_OK)
    code = roundUp(bytes, page, "aclrtMemGetAllocationGranularity", &bytes_, error);
  if (code != WL_OK) return code;
  own_.bytes = bytes_;
  Part& part = parts_[rank_];
  code = device_->check(acl.aclrtMallocPhysical(&part.physical, bytes_, &properties, 0),
                        "aclrtMallocPhysical", error);
  if (code != WL_OK) {
    part.physical = nullptr;
    return code;
  }
  uint32_t readers[kMostDeviceRanks] = {};
  int32_t importers[kMostDeviceRanks] = {};
  uint32_t readerCount = 0;
  uint32_t importerCount = 0;
  for (uint32_t rank = 0; rank < statements_.size(); ++rank) {
    const uint32_t device = statements_[rank].driverDevice;
    if (isHere(rank)) {
      // Adds each device once, since ranks may share one.
      if (std::find(readers, readers + readerCount, device) == readers + readerCount)
        readers[readerCount++] = device;
    } else {
      importers[importerCount++] = statements_[rank].process;
    }
  }
  code = map(part, readers, readerCount, error);
  if (code == WL_OK) code = device_->zero(part.address, bytes_, error);
  own_.address = reinterpret_cast<uint64_t>(part.address);
  if (code != WL_OK || importerCount == 0) return code;
  code = device_->check(acl.aclrtMemExportToShareableHandle(part.physical, kHandleTypeNone,
                                                            kExportToNamedProcesses, &own_.handle),
                        "aclrtMemExportToShareableHandle", error);
  if (code != WL_OK) return code;
  return device_->check(
      acl.aclrtMemSetPidToShareableHandle(own_.handle, importers, importerCount),
      "aclrtMemSetPidToShareableHandle", error);
}

Code DeviceWindow::reach(uint32_t peer, wl_error_t* error) {
  const DeviceStatement& theirs = statements_[peer];
  if (Code code = enableAccess(peer, error); code != WL_OK) return code;
  Part& part = parts_[peer];
  if (isHere(peer)) {
    part.address = reinterpret_cast<void*>(theirs.address);
    return WL_OK;
  }
  const Code code = device_->check(device_->acl().aclrtMemImportFromShareableHandle(
                                       theirs.handle, device_->number(), &part.physical),
                                   "aclrtMemImportFromShareableHandle", error);
  if (code != WL_OK) {
    part.physical = nullptr;
    return code;
  }
  const uint32_t own = device_->driverNumber();
  return map(part, &own, 1, error);
}

Code DeviceWindow::enableAccess(uint32_t peer, wl_error_t* error) {
  const Acl& acl = device_->acl();
  const uint32_t theirs = statements_[peer].driverDevice;
  if (theirs == device_->driverNumber()) return WL_OK;
  int32_t device = 0;
  if (Code code = device_->find(theirs, &device, error); code != WL_OK) return code;
  int32_t can = 0;
  Code code = device_->check(acl.aclrtDeviceCanAccessPeer(&can, device_->number(), device),
                             "aclrtDeviceCanAccessPeer", error);
  if (code != WL_OK) return code;
  if (can != 1) {
    return fail(error, WL_UNSUPPORTED, "device %d of rank %u can't reach device %d of rank %u",
                device_->number(), rank_, device, peer);
  }
  code = device_->check(acl.aclrtDeviceEnablePeerAccess(device, 0), "aclrtDeviceEnablePeerAccess",
                        error);
  const int64_t start = clockNs();
  for (int32_t status = 0; code == WL_OK;) {
    code = device_->check(acl.aclrtDevicePeerAccessStatus(device_->number(), device, &status),
                          "aclrtDevicePeerAccessStatus", error);
    if (code != WL_OK || status == 1) break;
    if (clockNs() - start > kAccessLimitNs) {
      return fail(error, WL_DEADLINE_EXCEEDED,
                  "device %d of rank %u did not get access to device %d of rank %u within 3 s",
                  device_->number(), rank_, device, peer);
    }
    usleep(kAccessLookUs);
  }
  return code;
}

Code DeviceWindow::map(Part& part, const uint32_t* driverDevices, uint32_t count,
                       wl_error_t* error) {
  const Acl& acl = device_->acl();
  Code code =
      device_->check(acl.aclrtReserveMemAddress(&part.address, bytes_, 0, nullptr, 0),
                     "aclrtReserveMemAddress", error);
  part.isReserved = code == WL_OK;
  if (code != WL_OK) return code;
  code = device_->check(acl.aclrtMapMem(part.address, bytes_, 0, part.physical, 0), "aclrtMapMem",
                        error);
  part.isMapped = code == WL_OK;
  if (code != WL_OK || acl.aclrtMemSetAccess == nullptr) return code;
  AclAccess accesses[kMostDeviceRanks] = {};
  for (uint32_t i = 0; i < count; ++i) {
    accesses[i].flags = kAccessReadWrite;
    accesses[i].location = {driverDevices[i], kLocationDevice};
  }
  return device_->check(acl.aclrtMemSetAccess(part.address, bytes_, accesses, count),
                        "aclrtMemSetAccess", error);
}

Code DeviceWindow::publishContext(wl_error_t* error) {
  DeviceContext context = {0, 0, rank_, static_cast<uint32_t>(parts_.size()), bytes_, {}, {}};
  for (uint32_t rank = 0; rank < parts_.size(); ++rank)
    context.windowsIn[rank] = reinterpret_cast<uint64_t>(parts_[rank].address);
  if (Code code = device_->allocate(sizeof context, &context_, error); code != WL_OK) return code;
  return device_->toDevice(context_, &context, sizeof context, error);
}

Code DeviceWindow::close(wl_error_t* error) {
  if (device_ == nullptr) return WL_OK;
  const Acl& acl = device_->acl();
  Code code = WL_OK;
  const auto undo = [&](AclError result, const char* call) {
    const Code undone = device_->check(result, call, code == WL_OK ? error : nullptr);
    if (code == WL_OK) code = undone;
  };
  if (context_ != nullptr) undo(acl.aclrtFree(context_), "aclrtFree");
  context_ = nullptr;
  for (Part& part : parts_) {
    if (part.isMapped) undo(acl.aclrtUnmapMem(part.address), "aclrtUnmapMem");
    if (part.isReserved) undo(acl.aclrtReleaseMemAddress(part.address), "aclrtReleaseMemAddress");
    if (part.physical != nullptr) undo(acl.aclrtFreePhysical(part.physical), "aclrtFreePhysical");
    part = Part();
  }
  device_ = nullptr;
  bytes_ = 0;
  return code;
}

}  // namespace windlass::acl
