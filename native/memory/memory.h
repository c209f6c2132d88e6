// SPDX-License-Identifier: Apache-2.0
// Memory that Windlass owns: aligned blocks and mappings.
#pragma once

#include <cstdint>
#include <memory>

#include "native/base/error.h"

namespace windlass {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kLargest = uint64_t{1} << 46;  // half of what an x86-64 process can address

// Zeroed, aligned to max(64, alignment). `alignment` is 0 or a power of two. WL_RESOURCE where a
// large one is more than what is free.
Code allocateMemory(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error);
void freeMemory(void* memory);

struct FreesMemory {
  void operator()(void* memory) const { freeMemory(memory); }
};
// Memory that was allocated so.
using OwnedMemory = std::unique_ptr<void, FreesMemory>;

// Zeroed pages of their own, which go back to the system when they are unmapped and take memory as
// they are written; nullptr when there are none, and errno says why. `bytes` is not 0.
void* mapMemory(uint64_t bytes);
// The same that reserveShared() and releaseShared() take pages for, however few there are.
void* mapSparseMemory(uint64_t bytes);
// Leaves out of a core dump what would take memory by being read.
void keepOutOfDumps(void* memory, uint64_t bytes);
void unmapMemory(void* memory, uint64_t bytes);

}  // namespace windlass
