// SPDX-License-Identifier: Apache-2.0
#include "native/window/device.h"

#include "native/window/acl/rank_device.h"

namespace windlass {

std::unique_ptr<RankDevice> makeRankDevice() {
  return std::make_unique<acl::AclRankDevice>();
}

uint32_t deviceOf(uint32_t rank) {
  return rank;
}

}  // namespace windlass
