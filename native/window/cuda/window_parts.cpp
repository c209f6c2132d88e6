// SPDX-License-Identifier: Apache-2.0
#include "native/window/cuda/window_parts.h"

#include <algorithm>

namespace windlass::cuda {
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
    code = check(OwnPart::pageOf(*cuda, device, Reach::kThisProcess, &own),
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

// Nobody is told that a call fails.
WindowParts::~WindowParts() {
  Undone undone;
  for (OwnPart& part : own_) part.close(cuda_, &undone);
  if (address_ != 0) cuda_.cuMemAddressFree(address_, own_.size() * stride_);
}

Code WindowParts::make(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) {
  std::vector<uint32_t> all = {gpu.number()};
  for (const uint32_t number : devices_)
    if (std::find(all.begin(), all.end(), number) == all.end()) all.push_back(number);
  if (Code code = checkReach(gpu, rank, all, error); code != WL_OK) return code;
  return own_[rank].make(gpu, copies, Reach::kThisProcess, part(rank), stride_, all, error);
}

Code WindowParts::tryPeers(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) const {
  for (uint32_t peer = 0; peer < devices_.size(); ++peer) {
    if (devices_[peer] == gpu.number()) continue;
    const PlacedPart own = {rank, gpu.number(), part(rank)};
    const Code code = tryPart(copies, own, {peer, devices_[peer], part(peer)}, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
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
