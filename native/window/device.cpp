// SPDX-License-Identifier: Apache-2.0
#include "native/window/device.h"

#include <algorithm>

#include "native/base/target.h"
#include "native/window/acl/rank_device.h"
#include "native/window/cuda/rank_device.h"

namespace windlass {

std::unique_ptr<RankDevice> makeRankDevice() {
  if (kTarget.image != nullptr) return std::make_unique<cuda::CudaRankDevice>(kTarget.image);
  return std::make_unique<acl::AclRankDevice>();
}

Code checkDevices(wl_error_t* error) {
  const cuda::Cuda* driver = nullptr;
  return kTarget.image == nullptr ? WL_OK : cuda::Cuda::find(&driver, error);
}

uint32_t deviceOf(uint32_t rank) {
  if (kTarget.image == nullptr) return rank;
  return rank % std::clamp(cuda::countDevices(), 1u, kMostDeviceRanks);
}

}  // namespace windlass
