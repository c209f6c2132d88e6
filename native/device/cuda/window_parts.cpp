// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/window_parts.h"

#include <algorithm>
#include <string>

#include "native/device/cuda/rank_device.h"

namespace windlass::cuda {
namespace {

CudaRankDevice& cudaOf(RankDevice& device) {
  return static_cast<CudaRankDevice&>(device);
}

}  // namespace

Code WindowParts::reserve(const std::vector<uint32_t>& devices, uint32_t otherProcesses,
                          uint64_t bytes, std::unique_ptr<DeviceParts>* parts, wl_error_t* error) {
  const Cuda* cuda = nullptr;
  if (Code code = Cuda::find(&cuda, error); code != WL_OK) return code;
  std::unique_ptr<WindowParts> made(new WindowParts(*cuda, devices, otherProcesses));
  const auto check = [&](const Called& called, uint32_t device) {
    return cuda->check(called, ("device " + std::to_string(device)).c_str(), error);
  };
  size_t page = 0;
  uint32_t last = 0;
  for (uint32_t rank = 0; rank < devices.size(); ++rank) {
    if (!made->isHere(rank)) continue;
    last = devices[rank];
    CuDevice device = 0;
    size_t own = 0;
    Code code = check(cuda->cuDeviceGet(&device, static_cast<int32_t>(last)), last);
    if (code != WL_OK) return code;
    code = check(OwnPart::pageOf(*cuda, device, made->reach(), &own), last);
    if (code != WL_OK) return code;
    page = std::max(page, own);
  }
  Code code = roundUp(std::max<uint64_t>(bytes, 1), page, "cuMemGetAllocationGranularity",
                      &made->stride_, error);
  if (code != WL_OK) return code;
  const uint64_t whole = devices.size() * made->stride_;
  code = check(cuda->cuMemAddressReserve(&made->address_, whole, 0, 0, 0), last);
  if (code != WL_OK) {
    made->address_ = 0;
    return code;
  }
  *parts = std::move(made);
  return WL_OK;
}

Called WindowParts::close() {
  Undone undone;
  for (OwnPart& part : own_) part.close(cuda_, &undone);
  for (PeerPart& part : peers_) part.mapping.close(cuda_, &undone);
  if (address_ != 0) undone.note(cuda_.cuMemAddressFree(address_, own_.size() * stride_));
  address_ = 0;
  return undone.first;
}

bool WindowParts::isFirstHere(uint32_t rank) const {
  uint32_t first = 0;
  while (!isHere(first)) ++first;
  return first == rank;
}

Code WindowParts::make(RankDevice& device, uint32_t rank, wl_error_t* error) {
  const Gpu& gpu = cudaOf(device).gpu();
  return own_[rank].make(rank, gpu, cudaOf(device).copies(), reach(), part(rank), stride_,
                         eachOnce(gpu.number(), devices_), error);
}

Code WindowParts::ask(uint32_t rank, const std::vector<Offer>& offers, Liveness& liveness,
                      wl_error_t* error) {
  for (uint32_t peer = 0; peer < offers.size(); ++peer) {
    if (offers[peer].stride == stride_) continue;
    return fail(error, WL_MISMATCH,
                "a device window whose parts have %llu bytes in whole pages on rank %u and %llu on "
                "rank %u: have all ranks on GPUs of one kind",
                static_cast<unsigned long long>(stride_), rank,
                static_cast<unsigned long long>(offers[peer].stride), peer);
  }
  if (!isFirstHere(rank)) return WL_OK;
  for (uint32_t peer = 0; peer < offers.size(); ++peer) {
    if (isHere(peer)) continue;
    theirDevices_[peer] = static_cast<uint32_t>(offers[peer].device);
    const Code code = peers_[peer].request.ask(offers[peer].name, peer, liveness, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

// Each rank gives its part before it waits for others.
Code WindowParts::share(RankDevice& device, uint32_t rank, Liveness& liveness, wl_error_t* error) {
  const Gpu& gpu = cudaOf(device).gpu();
  Code code = own_[rank].give(otherProcesses_, liveness, error);
  if (!isFirstHere(rank)) return code;
  const std::vector<uint32_t> all = eachOnce(gpu.number(), devices_);
  for (uint32_t peer = 0; code == WL_OK && peer < peers_.size(); ++peer)
    if (!isHere(peer)) code = peers_[peer].map(gpu, part(peer), stride_, all, liveness, error);
  return code;
}

Code WindowParts::tryPeers(RankDevice& device, uint32_t rank, wl_error_t* error) const {
  const uint32_t number = cudaOf(device).gpu().number();
  for (uint32_t peer = 0; peer < devices_.size(); ++peer) {
    if (devices_[peer] == number) continue;
    const PlacedPart own = {rank, number, part(rank)};
    const PlacedPart theirs = {peer, theirDevices_[peer], part(peer)};
    const Code code = tryPart(cudaOf(device).copies(), own, theirs, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

Code WindowParts::checkAdds(RankDevice& own, uint32_t rank, uint32_t peer,
                            wl_error_t* error) const {
  const Gpu& gpu = cudaOf(own).gpu();
  if (devices_[peer] == gpu.number()) return WL_OK;
  CuDevice device = 0;
  int32_t does = 0;
  auto number = static_cast<int32_t>(devices_[peer]);
  Code code = WL_OK;
  // For a rank of another process, the driver knows which device it is in this process.
  if (!isHere(peer))
    code = gpu.check(cuda_.cuPointerGetAttribute(&number, kMemoryDevice, part(peer)), error);
  if (code != WL_OK || number == static_cast<int32_t>(gpu.number())) return code;
  code = gpu.check(cuda_.cuDeviceGet(&device, number), error);
  if (code == WL_OK)
    code = gpu.check(cuda_.cuDeviceGetP2PAttribute(&does, kNativeAtomics, gpu.device(), device),
                     error);
  if (code != WL_OK || does != 0) return code;
  return fail(error, WL_UNSUPPORTED,
              "device %u of rank %u does not add to the memory of device %u of rank %u so that no "
              "add is lost, says the driver: NVLink does. Put it, and have that rank add",
              gpu.number(), rank, theirDevices_[peer], peer);
}

}  // namespace windlass::cuda
