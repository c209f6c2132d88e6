// SPDX-License-Identifier: Apache-2.0
// Memory that Windlass owns: aligned blocks and mappings.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <memory>

#include "native/base/error.h"

namespace windlass {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kLargest = uint64_t{1} << 46;  // half of what an x86-64 process can address

constexpr uint64_t roundedUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Allocates zeroed memory, aligned to max(64, alignment). `alignment` is 0 or a power of two.
// Returns WL_RESOURCE if a large request exceeds the free memory.
Code allocateMemory(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error);
void freeMemory(void* memory);

struct FreesMemory {
  void operator()(void* memory) const { freeMemory(memory); }
};
using OwnedMemory = std::unique_ptr<void, FreesMemory>;

// Maps zeroed pages. Private ones take memory when written, and are freed when unmapped. With
// kSparse, the mapping may exceed the free memory: reserveShared() and releaseShared() reserve and
// free its pages. On failure returns nullptr and sets errno. `bytes` is not 0.
constexpr int kSparse = MAP_SHARED | MAP_NORESERVE;
void* mapMemory(uint64_t bytes, int kind = MAP_PRIVATE);
// Excludes the range from core dumps, since reading its pages would take memory.
void keepOutOfDumps(void* memory, uint64_t bytes);
void unmapMemory(void* memory, uint64_t bytes);

// Maps the file at an address that permits huge pages. On failure returns MAP_FAILED and sets
// errno.
void* mapAligned(int file, uint64_t bytes, int protection);
// Reserves as much as possible of the first `bytes` of a new file as huge pages, even if
// /sys/kernel/mm/transparent_hugepage/shmem_enabled is "never". Huge pages reduce TLB misses and
// page faults. If the kernel does not support this, the pages stay small.
void takeHugePages(int file, uint64_t bytes);

}  // namespace windlass
