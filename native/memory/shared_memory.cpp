// SPDX-License-Identifier: Apache-2.0
#include "native/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native/base/free_memory.h"
#include "native/base/open_file.h"
#include "native/base/text.h"
#include "native/memory/memory.h"

namespace windlass {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kName[] = "windlass";
constexpr int kMostInterruptions = 1000;
// Bytes of small reservations between two checks of free memory, each of which takes about 50 us.
constexpr uint64_t kUnlookedBytes = uint64_t{16} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

Code resource(wl_error_t* error, uint64_t bytes, const char* step) {
  return fail(error, WL_RESOURCE, "cannot share %llu bytes of memory: %s: %s",
              text(bytes), step, std::strerror(errno));
}

// Reserves the first `pages` bytes of the file. `bytes` is the requested size, for errors. A signal
// interrupts fallocate, which then reserves nothing. A periodic timer could interrupt every large
// call, so each retry is half as large, down to one page.
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
                  text(bytes), interruptions, text(length));
    } else {
      piece = std::max(piece / 2 / kPage * kPage, kPage);
    }
  }
  return WL_OK;
}

Code checkFree(uint64_t bytes, wl_error_t* error, uint64_t* left = nullptr) {
  const FreeMemory free = FreeMemory::look();
  if (left != nullptr) *left = free.bytes - std::min(bytes, free.bytes);
  return bytes <= free.bytes ? WL_OK
                             : free.refuse(error, "cannot share %llu bytes of memory", text(bytes));
}

}  // namespace

Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error, uint64_t later) {
  *file = -1;
  if (bytes == 0) return fail(error, WL_INVALID_ARGUMENT, "bytes is 0: there is nothing to share");
  if (bytes > kLargest) {
    return fail(error, WL_RESOURCE, "cannot share %llu bytes: more than a process can address",
                text(bytes));
  }
  const uint64_t pages = roundedUp(bytes, kPage);
  const uint64_t now = pages - later / kPage * kPage;
  if (Code code = checkFree(now, error); code != WL_OK) return code;
  // If the file exceeds this limit, the kernel sends a signal that ends the process.
  rlimit largest = {};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && pages > largest.rlim_cur) {
    return fail(error, WL_RESOURCE,
                "cannot share %llu bytes of memory: the limit of a file is %llu (ulimit -f)",
                text(bytes), text(largest.rlim_cur));
  }
  OpenFile made(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return resource(error, bytes, "memfd_create");
  if (ftruncate(made.number(), static_cast<off_t>(pages)) != 0)
    return resource(error, bytes, "ftruncate");
  takeHugePages(made.number(), now);
  if (Code code = reserve(made.number(), now, bytes, error); code != WL_OK) return code;
  if (fcntl(made.number(), F_ADD_SEALS, kSeals) != 0) return resource(error, bytes, "sealing");
  *file = made.release();
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
  // Older kernels reserve a page when it is written. Others may use the pages already.
  auto* at = static_cast<unsigned char*>(memory);
  for (uint64_t page = 0; page < bytes; page += kPage)
    __atomic_fetch_or(at + page, 0, __ATOMIC_RELAXED);
  return WL_OK;
}

void releaseShared(void* memory, uint64_t bytes) {
  // MADV_REMOVE fails for pages that the process has locked.
  if (madvise(memory, bytes, MADV_REMOVE) != 0) std::memset(memory, 0, bytes);
}

}  // namespace windlass
