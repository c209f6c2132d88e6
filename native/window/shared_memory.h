// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host map: files that have no name, so that nothing stays behind when
// the last of them is gone.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

// Zeroed memory of `bytes`, rounded up to whole pages, all of them reserved; it can neither shrink
// nor grow. WL_RESOURCE says what was asked for and what is free.
Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error);
// Maps it whole. WL_INVALID_ARGUMENT: a file that may shrink, which would end whoever touches it.
Code mapShared(int32_t file, void** memory, uint64_t* bytes, wl_error_t* error);

// What tells ranks' segments, `stride` apart from `base`, from others, wherever a process maps
// them: the file, the place in it, and how large they are. 0: the system doesn't tell.
uint64_t sharedIdentity(const void* base, uint64_t stride, uint64_t bytes);

// Bytes of memory that this process may still take, and which limit says so. Of a cgroup, what it
// keeps of files and can drop counts as free.
struct FreeMemory {
  uint64_t bytes;
  char limit[256];

  static FreeMemory look();
};

}  // namespace windlass
