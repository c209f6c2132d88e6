// SPDX-License-Identifier: Apache-2.0
// Files that processes map as huge pages.
#pragma once

#include <cstdint>

namespace windlass {

// Maps the file at an address that permits huge pages. On failure returns MAP_FAILED and sets
// errno.
void* mapAligned(int file, uint64_t bytes, int protection);
// Reserves as much as possible of the first `bytes` of a new file as huge pages, even if
// /sys/kernel/mm/transparent_hugepage/shmem_enabled is "never". Huge pages reduce TLB misses and
// page faults. If the kernel does not support this, the pages stay small.
void takeHugePages(int file, uint64_t bytes);

}  // namespace windlass
