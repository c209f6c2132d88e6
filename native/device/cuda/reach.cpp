// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/reach.h"

#include <algorithm>

namespace windlass::cuda {
namespace {

constexpr uint64_t kTriedBytes = 64;  // for each rank that tests a part

}  // namespace

std::vector<uint32_t> eachOnce(uint32_t first, const std::vector<uint32_t>& devices) {
  std::vector<uint32_t> all = {first};
  for (const uint32_t number : devices)
    if (number != kNobody && std::find(all.begin(), all.end(), number) == all.end())
      all.push_back(number);
  return all;
}

Code checkReach(const Gpu& gpu, uint32_t rank, const std::vector<uint32_t>& devices,
                wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  for (const uint32_t number : devices) {
    if (number == gpu.number()) continue;
    CuDevice device = 0;
    int32_t can = 0;
    Code code = gpu.check(cuda.cuDeviceGet(&device, static_cast<int32_t>(number)), error);
    if (code == WL_OK)
      code = gpu.check(cuda.cuDeviceCanAccessPeer(&can, device, gpu.device()), error);
    if (code != WL_OK) return code;
    if (can != 1) {
      return fail(error, WL_UNSUPPORTED,
                  "device %u does not reach device %u of rank %u, says the driver: have ranks on "
                  "devices that reach one another, or all on one, by CUDA_VISIBLE_DEVICES",
                  number, gpu.number(), rank);
    }
  }
  return WL_OK;
}

// The driver's answer is not enough: on some machines, copies between GPUs are lost.
Code tryPart(Copies& copies, const PlacedPart& own, const PlacedPart& peer, wl_error_t* error) {
  uint64_t sent[kTriedBytes / sizeof(uint64_t)];
  uint64_t come[kTriedBytes / sizeof(uint64_t)] = {};
  for (uint64_t i = 0; i < std::size(sent); ++i)
    sent[i] = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t{own.rank} << 32 | peer.rank);
  const CuAddress here = own.address + own.rank * kTriedBytes;
  const CuAddress there = peer.address + own.rank * kTriedBytes;
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
              own.device, own.rank, peer.device, peer.rank);
}

}  // namespace windlass::cuda
