// SPDX-License-Identifier: Apache-2.0
// Files that processes map as huge pages.
#pragma once

#include <cstdint>

namespace windlass {

// Maps the file where huge pages of it can be mapped as such; MAP_FAILED, and errno says why.
void* mapAligned(int file, uint64_t bytes, int protection);
// Reserves what it can of the first `bytes` of a new file as huge pages, also where
// /sys/kernel/mm/transparent_hugepage/shmem_enabled is never: processes that take turns on a core
// miss fewer translations, and none faults on each page. A kernel that can't leaves them small.
void takeHugePages(int file, uint64_t bytes);

}  // namespace windlass
