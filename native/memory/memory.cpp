// SPDX-License-Identifier: Apache-2.0
#include "native/memory/memory.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "native/base/free_memory.h"
#include "native/base/text.h"

namespace windlass {

namespace {

// calloc maps larger blocks separately. free unmaps them, which also ends the advice for their
// pages.
constexpr uint64_t kAlwaysMapped = uint64_t{32} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

// Requests huge pages there. The first touch of 2 MiB is then one page fault instead of 512.
void adviseHugePages(uint64_t first, uint64_t bytes) {
  const uint64_t start = roundedUp(first, kHugePage);
  const uint64_t end = (first + bytes) / kHugePage * kHugePage;
  if (start < end) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

}  // namespace

Code allocateMemory(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error) {
  if (memory == nullptr) return fail(error, WL_INVALID_ARGUMENT, "memory is NULL");
  *memory = nullptr;
  if ((alignment & (alignment - 1)) != 0) {
    return fail(error, WL_INVALID_ARGUMENT, "alignment %llu is not a power of two",
                text(alignment));
  }
  if (bytes > kLargest || alignment > kLargest) {
    return fail(error, WL_RESOURCE, "cannot allocate %llu bytes: more than a process can address",
                text(bytes));
  }
  // Touching more memory than is free would end the process.
  if (bytes >= kLargeBytes) {
    const FreeMemory free = FreeMemory::look();
    if (bytes > free.bytes)
      return free.refuse(error, "cannot allocate %llu bytes", text(bytes));
  }
  // calloc zeroes reused memory. Fresh pages of the system are zero and take memory when touched.
  const uint64_t step = std::max<uint64_t>(64, alignment);
  void* block = std::calloc(1, std::max<uint64_t>(64, bytes) + step + sizeof block);
  if (block == nullptr)
    return fail(error, WL_RESOURCE, "cannot allocate %llu bytes: out of memory", text(bytes));
  const uint64_t first = reinterpret_cast<uint64_t>(block) + sizeof block;
  if (bytes > kAlwaysMapped) adviseHugePages(first, bytes);
  auto* aligned = reinterpret_cast<void**>(roundedUp(first, step));
  aligned[-1] = block;
  *memory = aligned;
  return WL_OK;
}

void freeMemory(void* memory) {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

void* mapMemory(uint64_t bytes, int kind) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void keepOutOfDumps(void* memory, uint64_t bytes) {
  madvise(memory, bytes, MADV_DONTDUMP);
}

void unmapMemory(void* memory, uint64_t bytes) {
  munmap(memory, bytes);
}

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
  const uint64_t pages = roundedUp(bytes, kPage);
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
