// SPDX-License-Identifier: Apache-2.0
#include "native/window/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace windlass {
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

}  // namespace windlass
