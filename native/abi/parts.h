// SPDX-License-Identifier: Apache-2.0
// Collectives with parts of different sizes. Each checks the arguments of one call, then runs it.
#pragma once

#include "native/core/collectives.h"

namespace windlass {

Code exchangeParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on);
Code gatherParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on);
Code reduceParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on);

}  // namespace windlass
