// SPDX-License-Identifier: Apache-2.0
// Driver calls on a thread of their own, so that the caller returns even if the driver does not.
#pragma once

#include <cstdint>
#include <functional>

namespace windlass {

// Runs body() on a new thread. Returns nullptr once it has ended. After limitNs, returns the driver
// call that does not return. The objects that body() holds then stay allocated. body() may access
// only these objects, and must not throw. Throws std::system_error and std::bad_alloc.
const char* runWatched(std::function<void()> body, int64_t limitNs);

}  // namespace windlass
