// SPDX-License-Identifier: Apache-2.0
#include "native/base/free_memory.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/base/small_file.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// Number after `name` on the first line that starts with `name` and a number; `none` if there is no
// such line.
uint64_t numberOf(const FileText& file, const char* name, uint64_t none) {
  const size_t length = std::strlen(name);
  for (const char* line = file.text(); line != nullptr && *line != 0;
       line = std::strchr(line, '\n') == nullptr ? nullptr : std::strchr(line, '\n') + 1) {
    if (std::strncmp(line, name, length) != 0) continue;
    char* end = nullptr;
    const uint64_t number = std::strtoull(line + length, &end, 10);
    if (end != line + length) return number;
  }
  return none;
}

}  // namespace

FreeMemory FreeMemory::look() {
  FreeMemory free = {UINT64_MAX, "no limit is known"};
  const uint64_t available = numberOf(FileText("/proc/meminfo"), "MemAvailable:", UINT64_MAX >> 10);
  if (available != UINT64_MAX >> 10)
    free = {available << 10, "MemAvailable of /proc/meminfo"};
  for (CgroupFiles files; files.next();) {
    const uint64_t most = numberOf(files.read("memory.max"), "", UINT64_MAX);
    if (most == UINT64_MAX) continue;
    const uint64_t used = numberOf(files.read("memory.current"), "", 0);
    const uint64_t cache = numberOf(files.read("memory.stat"), "inactive_file ", 0);
    const uint64_t kept = used - std::min(used, cache);
    const uint64_t here = most - std::min(most, kept);
    if (here >= free.bytes) continue;
    free.bytes = here;
    std::snprintf(free.limit, sizeof free.limit, "memory.max of cgroup %.200s", files.path());
  }
  return free;
}

Code FreeMemory::refuse(wl_error_t* error, const char* format, ...) const {
  char what[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(what, sizeof what, format, values);
  va_end(values);
  return fail(error, WL_RESOURCE, "%s: %llu are free, says %s; ask for less, or free some", what,
              text(bytes), limit);
}

}  // namespace windlass
