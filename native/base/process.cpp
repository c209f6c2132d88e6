// SPDX-License-Identifier: Apache-2.0
#include "native/base/process.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/base/small_file.h"

namespace windlass {
namespace {

// In clock ticks since the system's start; 0: there is no such process, or it has ended and its
// parent hasn't looked yet.
uint64_t startOf(int32_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const FileText stat(path);
  // Its name stands in brackets and may hold any character.
  const char* at = std::strrchr(stat.text(), ')');
  if (at == nullptr || at[1] == 0 || at[2] == 'Z' || at[2] == 'X') return 0;
  // The state is the third field, the start the 22nd.
  for (int field = 2; field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return 0;
  }
  return std::strtoull(at + 1, nullptr, 10);
}

uint64_t pidNamespace() {
  struct stat found = {};
  return stat("/proc/self/ns/pid", &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

}  // namespace

Code processSelf(wl_process_t* process, wl_error_t* error) {
  if (process == nullptr) return fail(error, WL_INVALID_ARGUMENT, "process is NULL");
  if (process->struct_size < sizeof(wl_process_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "process->struct_size is %u, not %zu",
                process->struct_size, sizeof(wl_process_t));
  }
  process->pid = getpid();
  process->started = startOf(process->pid);
  process->pid_namespace = pidNamespace();
  if (process->started != 0 && process->pid_namespace != 0) return WL_OK;
  return fail(error, WL_UNSUPPORTED, "/proc doesn't tell of this process: is it mounted?");
}

Code openProcess(const wl_process_t& process, int* file, wl_error_t* error) {
  *file = -1;
  if (process.pid_namespace != pidNamespace()) {
    return fail(error, WL_UNSUPPORTED,
                "process %d lives in another pid namespace, where its number means nothing here; "
                "start both in one container, or share its pid namespace",
                process.pid);
  }
  const auto opened = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (opened < 0 && errno != ESRCH) {
    return fail(error, errno == ENOSYS ? WL_UNSUPPORTED : WL_RESOURCE,
                "cannot watch process %d: pidfd_open: %s", process.pid, std::strerror(errno));
  }
  // Looked at once the number can't pass to another.
  if (opened >= 0 && startOf(process.pid) != process.started) {
    close(opened);
    return WL_OK;
  }
  *file = opened;
  return WL_OK;
}

}  // namespace windlass
