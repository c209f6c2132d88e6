// SPDX-License-Identifier: Apache-2.0
#include "native/base/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace windlass {
namespace {

// The start of a small file, read without the heap; empty when it cannot be read.
class FileText {
 public:
  explicit FileText(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t length = read(file, text_, sizeof text_ - 1);
    close(file);
    if (length > 0) text_[length] = 0;
  }
  char* text() { return text_; }

 private:
  char text_[4096] = {};
};

int32_t affinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// This process's cgroup (v2), "/" or a path without a slash at its end; empty where there is none.
void findCgroup(char* path, size_t room) {
  FileText self("/proc/self/cgroup");
  path[0] = 0;
  char* rest = nullptr;
  for (char* line = strtok_r(self.text(), "\n", &rest); line != nullptr;
       line = strtok_r(nullptr, "\n", &rest)) {
    if (std::strncmp(line, "0::", 3) == 0) std::snprintf(path, room, "%s", line + 3);
  }
}

// The tightest quota from this process's cgroup (v2) up to the root of the hierarchy; 0 = none.
int32_t cgroupCores() {
  char path[PATH_MAX];
  findCgroup(path, sizeof path);
  int32_t cores = 0;
  const auto tighten = [&](const char* cpuMax) {
    const int32_t here = coresOfQuota(cpuMax);
    if (here > 0) cores = cores == 0 ? here : std::min(cores, here);
  };
  for (int depth = 0; depth < 64; ++depth) {
    char name[PATH_MAX + 32];
    std::snprintf(name, sizeof name, "/sys/fs/cgroup%s/cpu.max", path);
    tighten(FileText(name).text());
    char* slash = std::strrchr(path, '/');
    if (slash == nullptr || std::strcmp(path, "/") == 0) break;
    *slash = 0;
  }
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
