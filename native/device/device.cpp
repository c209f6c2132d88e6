// SPDX-License-Identifier: Apache-2.0
#include "native/memory/device.h"

#include <algorithm>

#include "native/ascend/acl/device.h"
#include "native/base/target.h"
#include "native/device/cuda/rank_device.h"
#include "native/device/cuda/window_parts.h"

namespace windlass {
namespace {

// Bytes that pass through host memory at a time.
constexpr uint64_t kPieceBytes = uint64_t{2} << 20;

}  // namespace

Code RankDevice::fillDevice(void* to, uint64_t bytes, const Fill& fill, wl_error_t* error) {
  std::vector<unsigned char> piece(std::min(bytes, kPieceBytes));
  Code code = WL_OK;
  for (uint64_t at = 0; code == WL_OK && at < bytes; at += kPieceBytes) {
    const uint64_t length = std::min(bytes - at, kPieceBytes);
    fill(piece.data(), at, length);
    code = toDevice(static_cast<unsigned char*>(to) + at, piece.data(), length, error);
  }
  return code;
}

Code RankDevice::takeFromDevice(const void* from, uint64_t bytes, const Take& take,
                                wl_error_t* error) {
  std::vector<unsigned char> piece(std::min(bytes, kPieceBytes));
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const uint64_t length = std::min(bytes - at, kPieceBytes);
    const auto* there = static_cast<const unsigned char*>(from) + at;
    if (Code code = fromDevice(piece.data(), there, length, error); code != WL_OK) return code;
    take(piece.data(), at, length);
  }
  return WL_OK;
}

Code RankDevice::copyRows(const std::vector<Rows>& rows, wl_error_t* error) {
  return rows.empty() ? WL_OK
                      : fail(error, WL_UNSUPPORTED, "devices of %s hold no callers' tensors",
                             kTarget.limits.name);
}

Code RankDevice::isReached(const void*, uint64_t, const std::vector<uint32_t>&, bool* is,
                           wl_error_t*) {
  *is = false;
  return WL_OK;
}

Code RankDevice::load(const void*, wl_error_t* error) {
  return fail(error, WL_UNSUPPORTED, "kernels of libraries don't run on %s: its devices run those "
              "that Windlass brings", kTarget.limits.name);
}

std::unique_ptr<RankDevice> makeRankDevice() {
  if (kTarget.hasGpus()) return std::make_unique<cuda::CudaRankDevice>(kTarget.image);
  return std::make_unique<acl::Device>();
}

Code reserveParts(const std::vector<uint32_t>& devices, uint32_t otherProcesses, uint64_t bytes,
                  std::unique_ptr<DeviceParts>* parts, wl_error_t* error) {
  if (kTarget.hasGpus())
    return cuda::WindowParts::reserve(devices, otherProcesses, bytes, parts, error);
  return acl::noParts(error);
}

Code checkDevices(wl_error_t* error) {
  const cuda::Cuda* driver = nullptr;
  return kTarget.hasGpus() ? cuda::Cuda::find(&driver, error) : WL_OK;
}

bool devicesSpanProcesses() {
  return kTarget.hasGpus();
}

uint32_t deviceOf(uint32_t rank) {
  if (!kTarget.hasGpus()) return rank;
  return rank % std::clamp(cuda::countDevices(), 1u, kMostDeviceRanks);
}

}  // namespace windlass
