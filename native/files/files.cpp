// SPDX-License-Identifier: Apache-2.0
// File operations that a checkpoint needs and the JDK lacks: reserved files, private mappings, and
// atomic renames and exchanges.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/base/text.h"
#include "windlass/windlass.h"

namespace windlass {
namespace {

constexpr uint64_t kLargestFile = uint64_t{1} << 62;
constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
constexpr unsigned kExchange = 2;   // RENAME_EXCHANGE

bool renameWith(const char* from, const char* to, unsigned flags) {
  return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags) == 0;
}

// Sets the size of a file and reserves its blocks if the file system can. Checks the free space
// first: a failing fallocate fills the file system before it returns ENOSPC, which other writers
// would see.
int reserve(int file, uint64_t bytes) {
  struct statvfs about;
  if (fstatvfs(file, &about) == 0 && about.f_blocks > 0 && about.f_frsize > 0 &&
      bytes / about.f_frsize > about.f_bavail) {
    return ENOSPC;
  }
  const off_t size = static_cast<off_t>(bytes);
  int number = 0;
  do {
    number = bytes == 0 || fallocate(file, 0, 0, size) == 0 ? 0 : errno;
  } while (number == EINTR);
  // Avoids posix_fallocate: glibc's fallback writes to each block.
  if (number == EOPNOTSUPP || number == ENOSYS) number = ftruncate(file, size) == 0 ? 0 : errno;
  return number;
}

bool flagsUnknown(int number) {
  return number == EINVAL || number == ENOSYS || number == ENOTSUP;
}

}  // namespace
}  // namespace windlass

using namespace windlass;

extern "C" {

int32_t wl_file_create(const char* path, uint64_t bytes, wl_error_t* error) {
  if (path == nullptr) return fail(error, WL_INVALID_ARGUMENT, "path is NULL");
  if (bytes > kLargestFile) {
    return fail(error, WL_RESOURCE, "%s: no file holds %llu bytes", path, text(bytes));
  }
  const OpenFile file(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0)
    return fail(error, WL_RESOURCE, "%s: cannot be created: %s%s", path, std::strerror(errno),
                errno == EMFILE ? "; raise the limit (ulimit -n)" : "");
  if (const int number = reserve(file.number(), bytes); number != 0) {
    unlink(path);
    return fail(error, WL_RESOURCE, "%s: cannot reserve %llu bytes: %s", path,
                text(bytes), std::strerror(number));
  }
  return WL_OK;
}

int32_t wl_file_map(const char* path, uint64_t bytes, void** address, wl_error_t* error) {
  if (path == nullptr || address == nullptr)
    return fail(error, WL_INVALID_ARGUMENT, "path or address is NULL");
  *address = nullptr;
  if (bytes == 0)
    return fail(error, WL_INVALID_ARGUMENT, "%s: an empty file cannot be mapped", path);
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC));
  if (file.number() < 0)
    return fail(error, WL_RESOURCE, "%s: cannot be opened: %s", path, std::strerror(errno));
  struct stat about;
  if (fstat(file.number(), &about) != 0) {
    return fail(error, WL_RESOURCE, "%s: cannot be examined: %s", path, std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode))
    return fail(error, WL_INVALID_ARGUMENT, "%s: not a regular file", path);
  if (static_cast<uint64_t>(about.st_size) != bytes) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: has %lld bytes now, and had %llu", path,
                text(int64_t{about.st_size}), text(bytes));
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                      file.number(), 0);
  if (memory == MAP_FAILED) {
    return fail(error, WL_RESOURCE, "%s: cannot map %llu bytes: %s", path,
                text(bytes), std::strerror(errno));
  }
  *address = memory;
  return WL_OK;
}

int32_t wl_file_unmap(void* address, uint64_t bytes, wl_error_t* error) {
  if (munmap(address, bytes) != 0) {
    return fail(error, WL_INVALID_ARGUMENT, "cannot unmap %llu bytes: %s",
                text(bytes), std::strerror(errno));
  }
  return WL_OK;
}

int32_t wl_file_read_private(const char* path, void* bytes, uint64_t room, uint64_t* size,
                             wl_error_t* error) {
  if (path == nullptr || bytes == nullptr || size == nullptr)
    return fail(error, WL_INVALID_ARGUMENT, "path, bytes or size is NULL");
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (file.number() < 0 || fstat(file.number(), &about) != 0) {
    const bool named = errno == ENOENT || errno == ENOTDIR;
    return fail(error, named ? WL_INVALID_ARGUMENT : WL_RESOURCE, "%s: cannot be read: %s", path,
                std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode))
    return fail(error, WL_INVALID_ARGUMENT, "%s is no regular file", path);
  if ((about.st_mode & 077) != 0) {
    return fail(error, WL_RESOURCE,
                "%s is open to others than its owner; chmod 600 it, and make a new one", path);
  }
  ssize_t got = 0;
  do {
    got = read(file.number(), bytes, room);
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    return fail(error, WL_RESOURCE, "%s: cannot be read: %s", path, std::strerror(errno));
  *size = static_cast<uint64_t>(got);
  return WL_OK;
}

int32_t wl_file_exchange(const char* a, const char* b, wl_error_t* error) {
  if (a == nullptr || b == nullptr) return fail(error, WL_INVALID_ARGUMENT, "a path is NULL");
  if (renameWith(a, b, kExchange)) return WL_OK;
  const int number = errno;
  if (flagsUnknown(number)) {
    return fail(error, WL_UNSUPPORTED, "%s: this file system cannot exchange two names at once", b);
  }
  return fail(error, WL_RESOURCE, "%s and %s: cannot be exchanged: %s", a, b,
              std::strerror(number));
}

int32_t wl_file_publish(const char* from, const char* to, wl_error_t* error) {
  if (from == nullptr || to == nullptr) return fail(error, WL_INVALID_ARGUMENT, "a path is NULL");
  if (renameWith(from, to, kNoReplace)) return WL_OK;
  int number = errno;
  if (flagsUnknown(number)) {
    struct stat about;
    if (lstat(to, &about) == 0) {
      number = EEXIST;
    } else if (std::rename(from, to) == 0) {
      return WL_OK;
    } else {
      number = errno;
    }
  }
  if (number == EEXIST || number == ENOTEMPTY)
    return fail(error, WL_INVALID_ARGUMENT, "%s: exists already", to);
  return fail(error, WL_RESOURCE, "%s: cannot be renamed to %s: %s", from, to,
              std::strerror(number));
}

}  // extern "C"
