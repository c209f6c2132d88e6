// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host map: unnamed files, which the system frees when the last
// process ends. This file makes and reserves them. native/memory/shared_files.h finds them, and
// native/memory/shared_mapping.h maps them.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

// Link target of such a file in /proc.
constexpr char kSharedLink[] = "/memfd:windlass (deleted)";

// Makes a file of `bytes` zeroed bytes, rounded up to whole pages and reserved except for the last
// `later` bytes. It can neither shrink nor grow. WL_RESOURCE states the requested and the free
// size.
Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error, uint64_t later = 0);
// Reserves whole mapped pages of the last `later` bytes before anybody touches them. Errors are
// those of shareMemory(). `allowed`: bytes that consecutive calls may reserve before the next check
// of free memory, initially 0.
Code reserveShared(void* memory, uint64_t bytes, wl_error_t* error, uint64_t* allowed = nullptr);
// Returns whole pages to the system, for all processes that map them. The pages become zero and
// unreserved.
void releaseShared(void* memory, uint64_t bytes);

}  // namespace windlass
