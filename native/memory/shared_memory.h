// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host map: files that have no name, so that nothing stays behind when
// the last of them is gone. They are made and reserved here; native/memory/shared_files.h finds
// them, and native/memory/shared_mapping.h maps them.
#pragma once

#include <cstdint>

#include "native/base/error.h"

namespace windlass {

// What /proc shows such a file as.
constexpr char kSharedLink[] = "/memfd:windlass (deleted)";

// Zeroed memory of `bytes`, rounded up to whole pages, reserved but for the last `later` bytes; it
// can neither shrink nor grow. WL_RESOURCE says what was asked for and what is free.
Code shareMemory(uint64_t bytes, int32_t* file, wl_error_t* error, uint64_t later = 0);
// Reserves whole pages of what was left for later, as they are mapped here, before anybody touches
// them. WL_RESOURCE likewise. `allowed`: of reservations in a row, what may be reserved before
// another look at what is free; 0 before the first.
Code reserveShared(void* memory, uint64_t bytes, wl_error_t* error, uint64_t* allowed = nullptr);
// Gives whole pages back to the system, in all processes that map them: they are zero then, and as
// they were before they were reserved.
void releaseShared(void* memory, uint64_t bytes);

}  // namespace windlass
