// SPDX-License-Identifier: Apache-2.0
#include "native/base/process.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/base/mixed.h"
#include "native/base/small_file.h"

namespace windlass {
namespace {

// Fields of /proc/PID/stat, numbered as in proc(5).
constexpr int kStateField = 3;
constexpr int kFlagsField = 9;
constexpr int kStartField = 22;  // clock ticks since boot

FileText statOf(int32_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  return FileText(path);
}

// Field `number`, from 3 on; "" if it can't be read.
const char* fieldOf(const FileText& stat, int number) {
  // Field 2, the name, is in brackets and may hold any character.
  const char* at = std::strrchr(stat.text(), ')');
  for (int n = 2; at != nullptr && n < number; ++n) at = std::strchr(at + 1, ' ');
  return at == nullptr ? "" : at + 1;
}

// Returns 0 if the field can't be read.
uint64_t numberOf(int32_t pid, int field) {
  return std::strtoull(fieldOf(statOf(pid), field), nullptr, 10);
}

uint64_t pidNamespace() {
  struct stat found = {};
  return stat("/proc/self/ns/pid", &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

}  // namespace

Code processSelf(wl_process_t* process, wl_error_t* error) {
  if (processNamed(getpid(), process, nullptr) == WL_OK) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "/proc doesn't tell of this process: not mounted, or too many open files?");
}

Code processNamed(int32_t pid, wl_process_t* process, wl_error_t* error) {
  process->pid = pid;
  process->started = numberOf(pid, kStartField);
  process->pid_namespace = pidNamespace();
  if (process->started != 0 && process->pid_namespace != 0) return WL_OK;
  return fail(error, WL_PEER_LOST, "there is no process %d, or /proc hides it", pid);
}

uint64_t processWord() {
  const uint64_t named[] = {static_cast<uint64_t>(getpid()), numberOf(getpid(), kStartField),
                            pidNamespace()};
  uint64_t word = 0;
  for (const uint64_t value : named) word = mixed(word, value);
  return word;
}

bool isEnding(int32_t pid) {
  constexpr uint64_t kExiting = 4;
  return (numberOf(pid, kFlagsField) & kExiting) != 0;
}

wl_process_state processState(const wl_process_t& process) {
  OpenFile file;
  if (openProcess(process, &file, nullptr) != WL_OK) return WL_PROCESS_UNKNOWN;
  if (!file) return WL_PROCESS_ENDED;
  const char state = *fieldOf(statOf(process.pid), kStateField);
  pollfd ended = {file.number(), POLLIN, 0};
  if (poll(&ended, 1, 0) > 0) return WL_PROCESS_ENDED;
  return state == 'T' || state == 't' ? WL_PROCESS_STOPPED : WL_PROCESS_RUNS;
}

Code openProcess(const wl_process_t& process, OpenFile* file, wl_error_t* error) {
  if (process.pid_namespace != pidNamespace()) {
    return fail(error, WL_UNSUPPORTED,
                "process %d lives in another pid namespace, where its number means nothing here; "
                "start both in one container, share its pid namespace, or give those of each "
                "another WINDLASS_HOST, so that they start as several hosts do",
                process.pid);
  }
  OpenFile opened(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!opened && errno == ESRCH) return WL_OK;
  if (!opened) {
    return fail(error, errno == ENOSYS ? WL_UNSUPPORTED : WL_RESOURCE,
                "cannot watch process %d: pidfd_open: %s", process.pid, std::strerror(errno));
  }
  // If the poll below finds the process alive, its pid was not reused before this read.
  const uint64_t started = numberOf(process.pid, kStartField);
  pollfd ended = {opened.number(), POLLIN, 0};
  if (poll(&ended, 1, 0) > 0 || (started != 0 && started != process.started)) return WL_OK;
  if (started == 0) {
    return fail(error, WL_RESOURCE,
                "cannot watch process %d: /proc/%d/stat can't be read: too many open files, or "
                "/proc hides it?",
                process.pid, process.pid);
  }
  *file = std::move(opened);
  return WL_OK;
}

}  // namespace windlass
