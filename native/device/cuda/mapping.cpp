// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/mapping.h"

#include "windlass/offload.h"

namespace windlass::cuda {
namespace {

Code grantAccess(const Gpu& gpu, CuAddress address, uint64_t bytes,
                 const std::vector<uint32_t>& devices, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  CuAccess accesses[kMostDeviceRanks] = {};
  uint32_t count = 0;
  for (const uint32_t number : devices) {
    CuDevice device = gpu.device();
    if (number != gpu.number()) {
      const Code code = gpu.check(cuda.cuDeviceGet(&device, static_cast<int32_t>(number)), error);
      if (code != WL_OK) return code;
    }
    accesses[count++] = {{kLocationDevice, device}, kAccessReadWrite};
  }
  return gpu.check(cuda.cuMemSetAccess(address, bytes, accesses, count), error);
}

}  // namespace

Code Mapping::make(const Gpu& gpu, CuPhysical physical, CuAddress at, uint64_t bytes,
                   const std::vector<uint32_t>& devices, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  address_ = at;
  bytes_ = bytes;
  const Code code = gpu.check(cuda.cuMemMap(address_, bytes, 0, physical, 0), error);
  isMapped_ = code == WL_OK;
  return code != WL_OK ? code : grantAccess(gpu, address_, bytes, devices, error);
}

void Mapping::close(const Cuda& cuda, Undone* undone) {
  if (isMapped_) undone->note(cuda.cuMemUnmap(address_, bytes_));
  *this = {};
}

}  // namespace windlass::cuda
