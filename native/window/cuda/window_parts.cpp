// SPDX-License-Identifier: Apache-2.0
#include "native/window/cuda/window_parts.h"

#include <algorithm>

namespace windlass::cuda {
namespace {

constexpr uint64_t kTriedBytes = 64;  // of a part, for each rank that tries to reach it

CuPhysicalProperties propertiesOn(CuDevice device) {
  CuPhysicalProperties properties = {};
  properties.type = kAllocationPinned;
  properties.handleTypes = kHandleNone;
  properties.location = {kLocationDevice, device};
  return properties;
}

}  // namespace

Code WindowParts::reserve(const std::vector<uint32_t>& devices, uint64_t bytes,
                          std::unique_ptr<DeviceParts>* parts, wl_error_t* error) {
  const Cuda* cuda = nullptr;
  if (Code code = Cuda::find(&cuda, error); code != WL_OK) return code;
  std::unique_ptr<WindowParts> made(new WindowParts(*cuda, devices));
  const auto check = [&](CuResult result, const char* call) {
    return cuda->check(result, call, "the memory of a window", error);
  };
  size_t page = 0;
  for (uint32_t rank = 0; rank < devices.size(); ++rank) {
    CuDevice device = 0;
    size_t own = 0;
    Code code =
        check(cuda->cuDeviceGet(&device, static_cast<int32_t>(devices[rank])), "cuDeviceGet");
    if (code != WL_OK) return code;
    const CuPhysicalProperties properties = propertiesOn(device);
    code = check(cuda->cuMemGetAllocationGranularity(&own, &properties, kGranularityRecommended),
                 "cuMemGetAllocationGranularity");
    if (code != WL_OK) return code;
    page = std::max(page, own);
  }
  if (page == 0) {
    return fail(error, WL_DEVICE,
                "devices have pages of 0 bytes, says cuMemGetAllocationGranularity");
  }
  made->stride_ = (std::max<uint64_t>(bytes, 1) + page - 1) / page * page;
  const Code code =
      check(cuda->cuMemAddressReserve(&made->address_, devices.size() * made->stride_, 0, 0, 0),
            "cuMemAddressReserve");
  if (code != WL_OK) {
    made->address_ = 0;
    return code;
  }
  *parts = std::move(made);
  return WL_OK;
}

// A context is needed for none of these calls. Nobody is told that one fails.
WindowParts::~WindowParts() {
  for (uint32_t rank = 0; rank < parts_.size(); ++rank) {
    if (parts_[rank].isMapped) cuda_.cuMemUnmap(part(rank), stride_);
    if (parts_[rank].hasPhysical) cuda_.cuMemRelease(parts_[rank].physical);
  }
  if (address_ != 0) cuda_.cuMemAddressFree(address_, parts_.size() * stride_);
}

Code WindowParts::make(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) {
  const CuPhysicalProperties properties = propertiesOn(gpu.device());
  Part& own = parts_[rank];
  Code code = gpu.checkMemory(cuda_.cuMemCreate(&own.physical, stride_, &properties, 0),
                              "cuMemCreate", stride_, error);
  own.hasPhysical = code == WL_OK;
  if (code != WL_OK) return code;
  code = gpu.check(cuda_.cuMemMap(part(rank), stride_, 0, own.physical, 0), "cuMemMap", error);
  own.isMapped = code == WL_OK;
  if (code == WL_OK) code = allow(gpu, rank, error);
  return code == WL_OK ? copies.zero(part(rank), stride_, error) : code;
}

Code WindowParts::allow(const Gpu& gpu, uint32_t rank, wl_error_t* error) const {
  std::vector<uint32_t> all = {gpu.number()};
  std::vector<CuAccess> accesses = {{{kLocationDevice, gpu.device()}, kAccessReadWrite}};
  for (const uint32_t number : devices_) {
    if (std::find(all.begin(), all.end(), number) != all.end()) continue;
    all.push_back(number);
    CuDevice device = 0;
    int32_t can = 0;
    Code code =
        gpu.check(cuda_.cuDeviceGet(&device, static_cast<int32_t>(number)), "cuDeviceGet", error);
    if (code == WL_OK)
      code = gpu.check(cuda_.cuDeviceCanAccessPeer(&can, device, gpu.device()),
                       "cuDeviceCanAccessPeer", error);
    if (code != WL_OK) return code;
    if (can != 1) {
      return fail(error, WL_UNSUPPORTED,
                  "device %u does not reach device %u of rank %u, says the driver: have ranks on "
                  "devices that reach one another, or all on one, by CUDA_VISIBLE_DEVICES",
                  number, gpu.number(), rank);
    }
    accesses.push_back({{kLocationDevice, device}, kAccessReadWrite});
  }
  return gpu.check(cuda_.cuMemSetAccess(part(rank), stride_, accesses.data(), accesses.size()),
                   "cuMemSetAccess", error);
}

Code WindowParts::tryPeers(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) const {
  for (uint32_t peer = 0; peer < devices_.size(); ++peer) {
    if (devices_[peer] == gpu.number()) continue;
    if (Code code = tryPeer(gpu, copies, rank, peer, error); code != WL_OK) return code;
  }
  return WL_OK;
}

// The driver's word is not enough: machines are known whose copies between GPUs come to nothing.
Code WindowParts::tryPeer(const Gpu& gpu, Copies& copies, uint32_t rank, uint32_t peer,
                          wl_error_t* error) const {
  unsigned char sent[kTriedBytes];
  unsigned char come[kTriedBytes] = {};
  for (uint32_t i = 0; i < kTriedBytes; ++i)
    sent[i] = static_cast<unsigned char>(1 + (i * 37 + rank * 11 + peer * 5) % 255);
  const CuAddress here = part(rank) + rank * kTriedBytes;
  const CuAddress there = part(peer) + rank * kTriedBytes;
  Code code = copies.toDevice(here, sent, sizeof sent, error);
  if (code == WL_OK) code = copies.onDevices(there, here, sizeof sent, error);
  if (code == WL_OK) code = copies.zero(here, sizeof sent, error);
  if (code == WL_OK) code = copies.onDevices(here, there, sizeof sent, error);
  if (code == WL_OK) code = copies.fromDevice(come, here, sizeof come, error);
  if (code == WL_OK) code = copies.zero(here, sizeof sent, error);
  if (code == WL_OK) code = copies.zero(there, sizeof sent, error);
  if (code != WL_OK || std::equal(std::begin(sent), std::end(sent), std::begin(come))) return code;
  return fail(error, WL_UNSUPPORTED,
              "device %u of rank %u does not reach device %u of rank %u: what it copied there and "
              "back has changed, whatever the driver says. Have all ranks on one device, by "
              "CUDA_VISIBLE_DEVICES, and look for an IOMMU or ACS that stands between them",
              gpu.number(), rank, devices_[peer], peer);
}

Code WindowParts::checkAdds(const Gpu& gpu, uint32_t rank, uint32_t peer, wl_error_t* error) const {
  if (devices_[peer] == gpu.number()) return WL_OK;
  CuDevice device = 0;
  int32_t does = 0;
  Code code = gpu.check(cuda_.cuDeviceGet(&device, static_cast<int32_t>(devices_[peer])),
                        "cuDeviceGet", error);
  if (code == WL_OK)
    code = gpu.check(cuda_.cuDeviceGetP2PAttribute(&does, kNativeAtomics, gpu.device(), device),
                     "cuDeviceGetP2PAttribute", error);
  if (code != WL_OK || does != 0) return code;
  return fail(error, WL_UNSUPPORTED,
              "device %u of rank %u does not add to the memory of device %u of rank %u so that no "
              "add is lost, says the driver: NVLink does. Put it, and have that rank add",
              gpu.number(), rank, devices_[peer], peer);
}

}  // namespace windlass::cuda
