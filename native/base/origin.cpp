// SPDX-License-Identifier: Apache-2.0
#include "native/base/origin.h"

#include <pthread.h>

namespace windlass {

std::atomic<uint32_t> forksBefore{0};

namespace {

void countFork() {
  forksBefore.fetch_add(1, std::memory_order_relaxed);
}

// Fails only if memory runs out while the library is loaded.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, countFork);

}  // namespace
}  // namespace windlass
