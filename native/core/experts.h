// SPDX-License-Identifier: Apache-2.0
// The expert operations of a communicator. Arguments have been checked, and tables are in windows.
#pragma once

#include "native/core/comm.h"
#include "windlass/experts.h"

namespace windlass {

// `table` states this rank's tokens. If they do not have their rows yet, it also states counts and
// records.
Code expertDispatch(Comm& comm, ExpertTable& table, const void* tokens, void* buffer,
                    int64_t deadlineNs, wl_error_t* error);
Code expertCombine(Comm& comm, const ExpertTable& table, const void* outputs, int32_t dtype,
                   void* out, int64_t deadlineNs, wl_error_t* error);

}  // namespace windlass
