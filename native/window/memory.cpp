// SPDX-License-Identifier: Apache-2.0
#include "native/window/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace windlass {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 46;  // half of what an x86-64 process can address

}  // namespace

Code allocateMemory(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error) {
  if (memory == nullptr) return fail(error, WL_INVALID_ARGUMENT, "memory is NULL");
  *memory = nullptr;
  if ((alignment & (alignment - 1)) != 0) {
    return fail(error, WL_INVALID_ARGUMENT, "alignment %llu is not a power of two",
                static_cast<unsigned long long>(alignment));
  }
  if (bytes > kLargest || alignment > kLargest) {
    return fail(error, WL_RESOURCE, "cannot allocate %llu bytes: more than a process can address",
                static_cast<unsigned long long>(bytes));
  }
  void* block = nullptr;
  if (posix_memalign(&block, std::max<uint64_t>(64, alignment), std::max<uint64_t>(64, bytes)) !=
      0) {
    return fail(error, WL_RESOURCE, "cannot allocate %llu bytes: out of memory",
                static_cast<unsigned long long>(bytes));
  }
  std::memset(block, 0, std::max<uint64_t>(64, bytes));
  *memory = block;
  return WL_OK;
}

void freeMemory(void* memory) {
  std::free(memory);
}

void* mapMemory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmapMemory(void* memory, uint64_t bytes) {
  munmap(memory, bytes);
}

Code Segments::map(uint64_t bytes, uint32_t ranks, Segments** segments, wl_error_t* error) {
  *segments = nullptr;
  if (bytes > kLargest / ranks) {
    return fail(error, WL_RESOURCE,
                "cannot map a window of %llu bytes on %u ranks: more than a process can address",
                static_cast<unsigned long long>(bytes), ranks);
  }
  const uint64_t stride = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  const uint64_t mapped = stride * ranks;
  void* base = mapMemory(mapped);
  if (base == nullptr) {
    return fail(error, WL_RESOURCE,
                "cannot map a window of %llu bytes on %u ranks: %s; free memory or ask for less",
                static_cast<unsigned long long>(bytes), ranks, std::strerror(errno));
  }
  // Advice alone: a kernel without transparent huge pages refuses it, and nothing else changes.
  madvise(base, mapped, MADV_HUGEPAGE);
  *segments = new (std::nothrow) Segments(base, bytes, stride, mapped);
  if (*segments == nullptr) {
    unmapMemory(base, mapped);
    return fail(error, WL_RESOURCE, "out of memory");
  }
  return WL_OK;
}

Segments::~Segments() {
  unmapMemory(base_, mapped_);
}

}  // namespace windlass
