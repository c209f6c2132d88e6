// SPDX-License-Identifier: Apache-2.0
#include "native/base/small_file.h"

#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "native/base/open_file.h"

namespace windlass {

FileText::FileText(const char* path) {
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t length = ::read(file.number(), text_, sizeof text_ - 1);
  if (length > 0) text_[length] = 0;
}

CgroupFiles::CgroupFiles() {
  FileText self("/proc/self/cgroup");
  path_[0] = 0;
  char* rest = nullptr;
  for (char* line = strtok_r(self.text(), "\n", &rest); line != nullptr;
       line = strtok_r(nullptr, "\n", &rest)) {
    if (std::strncmp(line, "0::", 3) == 0) std::snprintf(path_, sizeof path_, "%s", line + 3);
  }
  if (std::strcmp(path_, "/") == 0) path_[0] = 0;
}

bool CgroupFiles::next() {
  if (!std::exchange(begun_, true)) return true;
  char* slash = std::strrchr(path_, '/');
  if (slash == nullptr) return false;
  *slash = 0;
  return true;
}

FileText CgroupFiles::read(const char* name) const {
  char file[sizeof path_ + 64];
  std::snprintf(file, sizeof file, "/sys/fs/cgroup%s/%s", path_, name);
  return FileText(file);
}

}  // namespace windlass
