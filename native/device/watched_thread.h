// SPDX-License-Identifier: Apache-2.0
// Calls of a device's driver that nobody's own thread makes: on one that lasts as long as they do,
// so that whoever needs them comes back where the driver does not.
#pragma once

#include <cstdint>
#include <functional>

namespace windlass {

// Runs body(), on a thread of its own, for no longer than limitNs: nullptr once it is over, else
// the call that the driver does not return from. What the body has copies of stays then; it touches
// nothing else, and throws nothing. Throws std::system_error and std::bad_alloc.
const char* runWatched(std::function<void()> body, int64_t limitNs);

}  // namespace windlass
