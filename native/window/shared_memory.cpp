// SPDX-License-Identifier: Apache-2.0
#include "native/window/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/base/small_file.h"
#include "native/window/memory.h"

namespace windlass {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int kMostInterruptions = 1000;

// The number after `name` where a line starts with it; `none` where no line does.
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

Code resource(wl_error_t* error, uint64_t bytes, const char* step) {
  return fail(error, WL_RESOURCE, "cannot share %llu bytes of memory: %s: %s",
              static_cast<unsigned long long>(bytes), step, std::strerror(errno));
}

// Reserves the first `pages` bytes of the file, for `bytes` that were asked for. A signal ends an
// fallocate, which then has reserved nothing, so that a timer may fire within each that is large:
// what follows one is half as large, down to a page.
Code reserve(int file, uint64_t pages, uint64_t bytes, wl_error_t* error) {
  uint64_t piece = pages;
  int interruptions = 0;  // since the last piece
  for (uint64_t at = 0; at < pages;) {
    const uint64_t length = std::min(piece, pages - at);
    if (fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(length)) == 0) {
      at += length;
      interruptions = 0;
    } else if (errno != EINTR) {
      return resource(error, bytes, "fallocate");
    } else if (++interruptions == kMostInterruptions) {
      return fail(error, WL_RESOURCE,
                  "cannot share %llu bytes of memory: signals interrupted the thread %d times in a "
                  "row while it reserved %llu of them; block the signals of a timer meanwhile",
                  static_cast<unsigned long long>(bytes), interruptions,
                  static_cast<unsigned long long>(length));
    } else {
      piece = std::max(piece / 2 / kPage * kPage, kPage);
    }
  }
  return WL_OK;
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

Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error) {
  if (file == nullptr) return fail(error, WL_INVALID_ARGUMENT, "file is NULL");
  *file = -1;
  if (bytes == 0) return fail(error, WL_INVALID_ARGUMENT, "bytes is 0: there is nothing to share");
  if (bytes > kLargest) {
    return fail(error, WL_RESOURCE, "cannot share %llu bytes: more than a process can address",
                static_cast<unsigned long long>(bytes));
  }
  const uint64_t pages = (bytes + kPage - 1) / kPage * kPage;
  const FreeMemory free = FreeMemory::look();
  if (pages > free.bytes) {
    return fail(error, WL_RESOURCE,
                "cannot share %llu bytes of memory: %llu are free, says %s; ask for less, or free "
                "some",
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(free.bytes), free.limit);
  }
  // Beyond it the kernel sends a signal that ends the process.
  rlimit largest = {};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && pages > largest.rlim_cur) {
    return fail(error, WL_RESOURCE,
                "cannot share %llu bytes of memory: the limit of a file is %llu (ulimit -f)",
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(largest.rlim_cur));
  }
  const int made = memfd_create("windlass", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return resource(error, bytes, "memfd_create");
  Code code = reserve(made, pages, bytes, error);
  if (code == WL_OK && fcntl(made, F_ADD_SEALS, kSeals) != 0)
    code = resource(error, bytes, "sealing");
  if (code != WL_OK) {
    close(made);
    return code;
  }
  *file = made;
  return WL_OK;
}

uint64_t sharedIdentity(const void* base, uint64_t stride, uint64_t bytes) {
  const auto address = reinterpret_cast<unsigned long long>(base);
  uint64_t word = 1;
  const auto mix = [&](uint64_t value) {
    word = (word ^ value) * 0x9e3779b97f4a7c15u;
    word ^= word >> 32;
  };
  mix(stride);
  mix(bytes);
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return 0;
  bool found = false;
  char line[512];
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long long start = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    if (std::sscanf(line, "%llx-%llx %*4s %llx %x:%x %llu", &start, &end, &offset, &major, &minor,
                    &inode) != 6 ||
        address < start || address >= end) {
      continue;
    }
    for (const unsigned long long part : {offset + (address - start), inode}) mix(part);
    mix(uint64_t{major} << 32 | minor);
    found = true;
  }
  std::fclose(maps);
  if (!found) return 0;
  return word == 0 ? 1 : word;
}

Code mapShared(int32_t file, void** memory, uint64_t* bytes, wl_error_t* error) {
  if (memory == nullptr) return fail(error, WL_INVALID_ARGUMENT, "memory is NULL");
  if (bytes == nullptr) return fail(error, WL_INVALID_ARGUMENT, "bytes is NULL");
  *memory = nullptr;
  *bytes = 0;
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "file %d %s; map what wl_memory_share made", file,
                seals < 0 && errno == EBADF ? "is not open"
                                            : "may shrink, which would end whoever touches it");
  }
  struct stat found = {};
  if (fstat(file, &found) != 0 || found.st_size <= 0) {
    return fail(error, WL_INVALID_ARGUMENT, "file %d is empty", file);
  }
  const auto size = static_cast<uint64_t>(found.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    return fail(error, WL_RESOURCE, "cannot map %llu bytes of file %d: %s",
                static_cast<unsigned long long>(size), file, std::strerror(errno));
  }
  *memory = mapped;
  *bytes = size;
  return WL_OK;
}

}  // namespace windlass
