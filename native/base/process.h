// SPDX-License-Identifier: Apache-2.0
// What tells one process of a host from another that has its number later.
#pragma once

#include "native/base/error.h"

namespace windlass {

Code processSelf(wl_process_t* process, wl_error_t* error);

// A file that can be polled for the end of the process; -1: it has ended. WL_UNSUPPORTED where its
// number means nothing here, or the system is too old.
Code openProcess(const wl_process_t& process, int* file, wl_error_t* error);

}  // namespace windlass
