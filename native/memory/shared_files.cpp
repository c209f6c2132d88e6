// SPDX-License-Identifier: Apache-2.0
#include "native/memory/shared_files.h"

#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "native/base/process.h"
#include "native/memory/shared_memory.h"

namespace windlass {
namespace {

Code ended(const wl_process_t& process, wl_error_t* error) {
  return fail(error, WL_PEER_LOST, "process %d has ended", process.pid);
}

// Returns WL_PEER_LOST if the process of that pidfd has ended. If an access to it `failed`, an
// ending process counts too: its files close shortly before the pidfd reports its end.
Code checkLives(const wl_process_t& process, const OpenFile& file, bool failed,
                wl_error_t* error) {
  pollfd end = {file.number(), POLLIN, 0};
  if (poll(&end, 1, 0) > 0) return ended(process, error);
  if (!failed || !isEnding(process.pid)) return WL_OK;
  return fail(error, WL_PEER_LOST, "process %d is ending, or its first thread has ended",
              process.pid);
}

}  // namespace

Code openShared(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error,
                int flags) {
  OpenFile process;
  if (Code code = openProcess(owner, &process, error); code != WL_OK) return code;
  if (!process) return ended(owner, error);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", owner.pid, number);
  OpenFile opened(open(path, flags | O_CLOEXEC));
  const int reason = errno;
  // If the owner is still alive, its pid was not reused, so the file is the owner's.
  if (Code code = checkLives(owner, process, !opened, error); code != WL_OK) return code;
  if (!opened) {
    const bool isRefused = reason == EACCES || reason == EPERM;
    return fail(error, WL_RESOURCE,
                "cannot open the memory that process %d shares: %s: %s; processes of one job run "
                "as one user, and see one another's /proc%s",
                owner.pid, path, std::strerror(reason),
                isRefused ? "; where they are in several user namespaces, as in rootless "
                            "containers, give the processes of each another WINDLASS_HOST, so "
                            "that they start as several hosts do"
                          : "");
  }
  *file = std::move(opened);
  return WL_OK;
}

Code listShared(const wl_process_t& owner, size_t most, std::vector<int32_t>* numbers,
                wl_error_t* error) {
  numbers->clear();
  OpenFile process;
  if (Code code = openProcess(owner, &process, error); code != WL_OK) return code;
  if (!process) return ended(owner, error);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd", owner.pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path), &closedir);
  int reason = errno;
  bool isRefused = false;
  for (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get());
       entry != nullptr && numbers->size() < most; entry = readdir(folder.get())) {
    char link[sizeof kSharedLink] = {};
    const ssize_t length = readlinkat(dirfd(folder.get()), entry->d_name, link, sizeof link);
    if (length < 0 && (errno == EACCES || errno == EPERM)) {
      reason = errno;
      isRefused = true;
    }
    if (length == sizeof kSharedLink - 1 && std::memcmp(link, kSharedLink, sizeof link - 1) == 0)
      numbers->push_back(static_cast<int32_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  if (Code code = checkLives(owner, process, folder == nullptr, error); code != WL_OK) return code;
  if (folder == nullptr || isRefused) {
    return fail(error, WL_RESOURCE,
                "cannot see what process %d has open: %s: %s; look as the user that it runs as, in "
                "its user namespace, or as root",
                owner.pid, path, std::strerror(reason));
  }
  return WL_OK;
}

uint64_t inodeOf(int file) {
  struct stat found = {};
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

}  // namespace windlass
