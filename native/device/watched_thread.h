// SPDX-License-Identifier: Apache-2.0
// Driver calls on a thread of their own, so that the caller returns even if the driver does not.
#pragma once

#include <cstdint>
#include <functional>

namespace windlass {

// Runs body() on a new thread. Returns nullptr once it has ended. After limitNs, returns the driver
// call that does not return. In that case the objects that body() holds stay allocated. The body
// accesses nothing else and throws nothing. Throws std::system_error and std::bad_alloc.
const char* runWatched(std::function<void()> body, int64_t limitNs);

}  // namespace windlass
