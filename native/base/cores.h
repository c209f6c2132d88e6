// SPDX-License-Identifier: Apache-2.0
// Number of cores that this process may use.
#pragma once

#include <cstdint>

namespace windlass {

// The smaller of the affinity mask and the cgroup's CPU quota (rounded up), at least 1.
int32_t allowedCores();

// Cores that a cgroup v2 `cpu.max` text ("max 100000", "150000 100000") allows, rounded up; 0 = no
// limit or unreadable.
int32_t coresOfQuota(const char* cpuMax);

}  // namespace windlass
