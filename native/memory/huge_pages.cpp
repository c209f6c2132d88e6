// SPDX-License-Identifier: Apache-2.0
#include "native/memory/huge_pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "native/memory/memory.h"

namespace windlass {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

}  // namespace

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

void takeHugePages(int file, uint64_t bytes) {
  const uint64_t whole = bytes / kHugePage * kHugePage;
  if (whole == 0) return;
  void* mapped = mapAligned(file, whole, PROT_READ | PROT_WRITE);
  if (mapped == MAP_FAILED) return;
  // Reserves one small page in each huge page, so that the collapse has no other pages to copy.
  bool isBegun = true;
  for (uint64_t at = 0; isBegun && at < whole; at += kHugePage)
    isBegun = fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(kPage)) == 0;
  if (isBegun) madvise(mapped, whole, kCollapse);
  munmap(mapped, whole);
}

}  // namespace windlass
