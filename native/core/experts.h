// SPDX-License-Identifier: Apache-2.0
// The expert operations as a communicator's. Arguments have been checked; tables are in windows.
#pragma once

#include "native/core/comm.h"
#include "windlass/experts.h"

namespace windlass {

// `table` states this rank's tokens, and unless they have their rows already counts and records.
Code expertDispatch(Comm& comm, ExpertTable& table, const void* tokens, void* buffer,
                    int64_t deadlineNs, wl_error_t* error);
Code expertCombine(Comm& comm, const ExpertTable& table, const void* outputs, int32_t dtype,
                   void* out, int64_t deadlineNs, wl_error_t* error);

}  // namespace windlass
