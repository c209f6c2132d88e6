// SPDX-License-Identifier: Apache-2.0
// Defaults for the items of a kernel; windlass/kernel.h describes the members.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// Items of a kernel with one phase, which runs after all ranks have entered. A rank returns after
// all ranks are done.
struct Items {
  static constexpr bool kEager = false;
  WL_CORE static constexpr uint32_t phases(const Launch&) { return 1; }
  WL_CORE static void plan(Launch& launch) { launch.cut(1, 1); }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) {
    return kEveryRank;
  }
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace windlass
