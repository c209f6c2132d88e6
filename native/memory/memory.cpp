// SPDX-License-Identifier: Apache-2.0
#include "native/memory/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "native/base/free_memory.h"

namespace windlass {

namespace {

// calloc maps larger blocks separately, and free unmaps them, which also ends the advice.
constexpr uint64_t kAlwaysMapped = uint64_t{32} << 20;

// Requests huge pages there. The first touch of 2 MiB is then one page fault instead of 512.
void adviseHugePages(uint64_t first, uint64_t bytes) {
  const uint64_t start = (first + kHugePage - 1) / kHugePage * kHugePage;
  const uint64_t end = (first + bytes) / kHugePage * kHugePage;
  if (start < end) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

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
  // Touching more memory than is free would end the process.
  if (bytes >= kLargeBytes) {
    const FreeMemory free = FreeMemory::look();
    if (bytes > free.bytes) {
      return free.refuse(error, "cannot allocate %llu bytes",
                         static_cast<unsigned long long>(bytes));
    }
  }
  // calloc zeroes reused memory. Fresh pages of the system are zero and take memory when touched.
  const uint64_t step = std::max<uint64_t>(64, alignment);
  void* block = std::calloc(1, std::max<uint64_t>(64, bytes) + step + sizeof block);
  if (block == nullptr) {
    return fail(error, WL_RESOURCE, "cannot allocate %llu bytes: out of memory",
                static_cast<unsigned long long>(bytes));
  }
  const uint64_t first = reinterpret_cast<uint64_t>(block) + sizeof block;
  if (bytes > kAlwaysMapped) adviseHugePages(first, bytes);
  auto* aligned = reinterpret_cast<void**>((first + step - 1) / step * step);
  aligned[-1] = block;
  *memory = aligned;
  return WL_OK;
}

void freeMemory(void* memory) {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

void* mapMemory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* mapSparseMemory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void keepOutOfDumps(void* memory, uint64_t bytes) {
  madvise(memory, bytes, MADV_DONTDUMP);
}

void unmapMemory(void* memory, uint64_t bytes) {
  munmap(memory, bytes);
}

}  // namespace windlass
