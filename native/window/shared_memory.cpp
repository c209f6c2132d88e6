// SPDX-License-Identifier: Apache-2.0
#include "native/window/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "native/base/process.h"
#include "native/base/small_file.h"
#include "native/window/memory.h"

namespace windlass {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kName[] = "windlass";
// As /proc shows what has that name.
constexpr char kLink[] = "/memfd:windlass (deleted)";
constexpr int kMostInterruptions = 1000;
// Of small reservations, between two looks at what is free, which take some 50 us each.
constexpr uint64_t kUnlookedBytes = uint64_t{16} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which Linux has from 5.14 on
constexpr int kCollapse = 25;       // MADV_COLLAPSE, from 6.1 on

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

// Maps the file where huge pages of it can be mapped as such; MAP_FAILED, and errno says why.
void* mapAligned(int file, uint64_t bytes, int protection) {
  if (bytes < kHugePage) return mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  const uint64_t taken = bytes + kHugePage;
  void* room = mmap(nullptr, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  const uint64_t before = (kHugePage - reinterpret_cast<uint64_t>(room) % kHugePage) % kHugePage;
  auto* aligned = static_cast<unsigned char*>(room) + before;
  void* mapped = mmap(aligned, bytes, protection, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) {
    const int why = errno;
    munmap(room, taken);
    errno = why;
    return MAP_FAILED;
  }
  const uint64_t pages = (bytes + kPage - 1) / kPage * kPage;
  if (before > 0) munmap(room, before);
  munmap(aligned + pages, taken - before - pages);
  return mapped;
}

// Reserves what it can of the first `bytes` of a new file as huge pages, also where
// /sys/kernel/mm/transparent_hugepage/shmem_enabled is never: processes that take turns on a core
// miss fewer translations, and none faults on each page. A kernel that can't leaves them small.
void takeHugePages(int file, uint64_t bytes) {
  const uint64_t whole = bytes / kHugePage * kHugePage;
  if (whole == 0) return;
  void* mapped = mapAligned(file, whole, PROT_READ | PROT_WRITE);
  if (mapped == MAP_FAILED) return;
  // Where a huge page holds one small page, the others need not be copied into it.
  bool isBegun = true;
  for (uint64_t at = 0; isBegun && at < whole; at += kHugePage)
    isBegun = fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(kPage)) == 0;
  if (isBegun) madvise(mapped, whole, kCollapse);
  munmap(mapped, whole);
}

Code checkFree(uint64_t bytes, wl_error_t* error, uint64_t* left = nullptr) {
  const FreeMemory free = FreeMemory::look();
  if (left != nullptr) *left = free.bytes - std::min(bytes, free.bytes);
  if (bytes <= free.bytes) return WL_OK;
  return fail(error, WL_RESOURCE,
              "cannot share %llu bytes of memory: %llu are free, says %s; ask for less, or free "
              "some",
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(free.bytes),
              free.limit);
}

}  // namespace

uint64_t inodeOf(int file) {
  struct stat found = {};
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

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

Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error, uint64_t later) {
  if (file == nullptr) return fail(error, WL_INVALID_ARGUMENT, "file is NULL");
  *file = -1;
  if (bytes == 0) return fail(error, WL_INVALID_ARGUMENT, "bytes is 0: there is nothing to share");
  if (bytes > kLargest) {
    return fail(error, WL_RESOURCE, "cannot share %llu bytes: more than a process can address",
                static_cast<unsigned long long>(bytes));
  }
  const uint64_t pages = (bytes + kPage - 1) / kPage * kPage;
  const uint64_t now = pages - later / kPage * kPage;
  if (Code code = checkFree(now, error); code != WL_OK) return code;
  // Beyond it the kernel sends a signal that ends the process.
  rlimit largest = {};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && pages > largest.rlim_cur) {
    return fail(error, WL_RESOURCE,
                "cannot share %llu bytes of memory: the limit of a file is %llu (ulimit -f)",
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(largest.rlim_cur));
  }
  const int made = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return resource(error, bytes, "memfd_create");
  Code code = WL_OK;
  if (ftruncate(made, static_cast<off_t>(pages)) != 0) {
    code = resource(error, bytes, "ftruncate");
  } else {
    takeHugePages(made, now);
    code = reserve(made, now, bytes, error);
  }
  if (code == WL_OK && fcntl(made, F_ADD_SEALS, kSeals) != 0)
    code = resource(error, bytes, "sealing");
  if (code != WL_OK) {
    close(made);
    return code;
  }
  *file = made;
  return WL_OK;
}

Code reserveShared(void* memory, uint64_t bytes, wl_error_t* error, uint64_t* allowed) {
  if (allowed != nullptr && bytes <= *allowed) {
    *allowed -= bytes;
  } else {
    uint64_t left = 0;
    if (Code code = checkFree(bytes, error, &left); code != WL_OK) return code;
    if (allowed != nullptr) *allowed = std::min(left, kUnlookedBytes);
  }
  int reserved = -1;
  for (int i = 0; reserved != 0 && i < kMostInterruptions; ++i) {
    reserved = madvise(memory, bytes, kPopulateWrite);
    if (reserved != 0 && errno != EINTR) break;
  }
  if (reserved == 0) return WL_OK;
  if (errno != EINVAL) return resource(error, bytes, "madvise");
  // Elsewhere a page is reserved as it is touched.
  auto* at = static_cast<volatile unsigned char*>(memory);
  for (uint64_t page = 0; page < bytes; page += kPage) at[page] = 0;
  return WL_OK;
}

void releaseShared(void* memory, uint64_t bytes) {
  // Pages that the process has locked stay.
  if (madvise(memory, bytes, MADV_REMOVE) != 0) std::memset(memory, 0, bytes);
}

namespace {

Code ended(const wl_process_t& process, wl_error_t* error) {
  return fail(error, WL_PEER_LOST, "process %d has ended", process.pid);
}

// WL_PEER_LOST where the process of that pidfd is over; `failed`: looking into it has, which may be
// why: its files are closed some moments before its end shows.
Code checkLives(const wl_process_t& process, const OpenFile& file, bool failed,
                wl_error_t* error) {
  pollfd end = {file.number(), POLLIN, 0};
  if (poll(&end, 1, 0) > 0) return ended(process, error);
  if (!failed || !isEnding(process.pid)) return WL_OK;
  return fail(error, WL_PEER_LOST, "process %d is ending, or its first thread has ended",
              process.pid);
}

Code openAs(const wl_process_t& owner, int32_t number, int flags, OpenFile* file,
            wl_error_t* error) {
  OpenFile process;
  if (Code code = openProcess(owner, &process, error); code != WL_OK) return code;
  if (!process) return ended(owner, error);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", owner.pid, number);
  OpenFile opened(open(path, flags | O_CLOEXEC));
  const int reason = errno;
  // Until here its number was its own, so that this is its file.
  if (Code code = checkLives(owner, process, !opened, error); code != WL_OK) return code;
  if (!opened) {
    return fail(error, WL_RESOURCE,
                "cannot open the memory that process %d shares: %s: %s; processes of one job run "
                "as one user, and see one another's /proc",
                owner.pid, path, std::strerror(reason));
  }
  *file = std::move(opened);
  return WL_OK;
}

}  // namespace

Code openShared(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error) {
  return openAs(owner, number, O_RDWR, file, error);
}

Code openToRead(const wl_process_t& owner, int32_t number, OpenFile* file, wl_error_t* error) {
  // What it is is seen once it is open: a pipe would wait for a writer.
  return openAs(owner, number, O_RDONLY | O_NONBLOCK | O_NOCTTY, file, error);
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
  const int reason = errno;
  for (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get());
       entry != nullptr && numbers->size() < most; entry = readdir(folder.get())) {
    char link[sizeof kLink] = {};
    const ssize_t length = readlinkat(dirfd(folder.get()), entry->d_name, link, sizeof link);
    if (length == sizeof kLink - 1 && std::memcmp(link, kLink, sizeof kLink - 1) == 0)
      numbers->push_back(static_cast<int32_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  if (Code code = checkLives(owner, process, folder == nullptr, error); code != WL_OK) return code;
  if (folder == nullptr) {
    return fail(error, WL_RESOURCE,
                "cannot see what process %d has open: %s: %s; look as the user that it runs as, or "
                "as root",
                owner.pid, path, std::strerror(reason));
  }
  return WL_OK;
}

SharedMapping::~SharedMapping() {
  if (memory_ != nullptr) unmapMemory(memory_, bytes_);
}

Code SharedMapping::make(uint64_t bytes, wl_error_t* error, uint64_t later) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  int32_t made = -1;
  if (Code code = shareMemory(bytes, &made, error, later); code != WL_OK) return code;
  return mapWhole(OpenFile(made), PROT_READ | PROT_WRITE, error);
}

Code SharedMapping::map(int32_t file, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  OpenFile own(fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!own) {
    return errno == EBADF
               ? fail(error, WL_INVALID_ARGUMENT,
                      "file %d is not open; map what wl_group_share made", file)
               : fail(error, WL_RESOURCE, "cannot keep file %d open: %s", file,
                      std::strerror(errno));
  }
  return mapWhole(std::move(own), PROT_READ | PROT_WRITE, error);
}

Code SharedMapping::map(const wl_process_t& owner, int32_t number, wl_error_t* error) {
  return mapNumber(owner, number, nullptr, error);
}

Code SharedMapping::map(const wl_process_t& owner, const SharedFile& named, wl_error_t* error) {
  return mapNumber(owner, static_cast<int32_t>(named.number), &named, error);
}

Code SharedMapping::mapNumber(const wl_process_t& owner, int32_t number, const SharedFile* named,
                              wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  OpenFile opened;
  if (Code code = openShared(owner, number, &opened, error); code != WL_OK) return code;
  if (named != nullptr && inodeOf(opened.number()) != named->inode) {
    return fail(error, WL_RESOURCE,
                "process %d has closed the memory that it shared as %d, and has other memory there",
                owner.pid, number);
  }
  return mapWhole(std::move(opened), PROT_READ | PROT_WRITE, error);
}

Code SharedMapping::mapToRead(const wl_process_t& owner, int32_t number, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  OpenFile opened;
  if (Code code = openToRead(owner, number, &opened, error); code != WL_OK) return code;
  return mapWhole(std::move(opened), PROT_READ, error);
}

Code SharedMapping::mapWhole(OpenFile file, int protection, wl_error_t* error) {
  const int seals = fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "the file may shrink, which would end whoever touches it; map what wl_group_share "
                "made");
  }
  struct stat found = {};
  if (fstat(file.number(), &found) != 0 || found.st_size <= 0)
    return fail(error, WL_INVALID_ARGUMENT, "the file is empty");
  const auto size = static_cast<uint64_t>(found.st_size);
  void* mapped = mapAligned(file.number(), size, protection);
  if (mapped == MAP_FAILED) {
    return fail(error, WL_RESOURCE, "cannot map %llu bytes of memory that processes share: %s",
                static_cast<unsigned long long>(size), std::strerror(errno));
  }
  memory_ = mapped;
  bytes_ = size;
  file_ = std::move(file);
  return WL_OK;
}

int32_t SharedMapping::file() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return file_.number();
}

SharedFile SharedMapping::named() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return file_ ? SharedFile{file_.number(), inodeOf(file_.number())} : SharedFile{};
}

void SharedMapping::closeFile() {
  std::lock_guard<std::mutex> lock(mutex_);
  file_ = OpenFile();
}

}  // namespace windlass
