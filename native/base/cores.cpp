// SPDX-License-Identifier: Apache-2.0
#include "native/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace windlass {
namespace {

int32_t affinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string readLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The tightest quota from this process's cgroup (v2) up to the root of the hierarchy; 0 = none.
int32_t cgroupCores() {
  std::ifstream self("/proc/self/cgroup");
  std::string line;
  std::string path;
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  int32_t cores = 0;
  for (int depth = 0; depth < 64; ++depth) {
    const int32_t here = coresOfQuota(readLine("/sys/fs/cgroup" + path + "/cpu.max"));
    if (here > 0) cores = cores == 0 ? here : std::min(cores, here);
    if (path.empty() || path == "/") break;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  const std::string quota = readLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = readLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  const int32_t first = coresOfQuota(quota + " " + period);
  if (first > 0) cores = cores == 0 ? first : std::min(cores, first);
  return cores;
}

}  // namespace

int32_t coresOfQuota(const std::string& cpuMax) {
  std::istringstream in(cpuMax);
  int64_t quota = 0;
  int64_t period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int32_t>(std::clamp<int64_t>((quota - 1) / period + 1, 1, 1 << 20));
}

int32_t allowedCores() {
  const int32_t quota = cgroupCores();
  const int32_t affinity = affinityCores();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

}  // namespace windlass
