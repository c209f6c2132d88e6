// SPDX-License-Identifier: Apache-2.0
#include "native/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "native/base/small_file.h"

namespace windlass {
namespace {

int32_t affinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// The tightest quota from this process's cgroup (v2) up to the root of the hierarchy; 0 = none.
int32_t cgroupCores() {
  int32_t cores = 0;
  const auto tighten = [&](const char* cpuMax) {
    const int32_t here = coresOfQuota(cpuMax);
    if (here > 0) cores = cores == 0 ? here : std::min(cores, here);
  };
  for (CgroupFiles files; files.next();) tighten(files.read("cpu.max").text());
  char both[64];
  FileText quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  FileText period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  std::snprintf(both, sizeof both, "%.31s %.31s", quota.text(), period.text());
  tighten(both);
  return cores;
}

}  // namespace

int32_t coresOfQuota(const char* cpuMax) {
  char* rest = nullptr;
  const long long quota = std::strtoll(cpuMax, &rest, 10);
  const long long period = std::strtoll(rest, nullptr, 10);
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int32_t>(std::clamp<long long>((quota - 1) / period + 1, 1, 1 << 20));
}

int32_t allowedCores() {
  const int32_t quota = cgroupCores();
  const int32_t affinity = affinityCores();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

}  // namespace windlass
