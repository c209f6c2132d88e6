// SPDX-License-Identifier: Apache-2.0
// Waits of a thread for another one that is about to answer: it gives its core up and looks again
// before it sleeps, since a sleep and the wake from it take tens of microseconds.
#pragma once

#include <sched.h>

#include <cstdint>
#include <mutex>

#include "native/base/clock.h"

namespace windlass {

// Until holds(), for forNs at most; whether it does.
template <class Holds>
bool yieldUntil(const Holds& holds, int64_t forNs) {
  if (holds()) return true;
  const int64_t endNs = clockNs() + forNs;
  for (;;) {
    sched_yield();
    if (holds()) return true;
    if (clockNs() >= endNs) return false;
  }
}

// Takes a lock that others hold for a moment.
inline void lockYielding(std::mutex& mutex) {
  constexpr int64_t kForNs = 1'000'000;
  if (!yieldUntil([&] { return mutex.try_lock(); }, kForNs)) mutex.lock();
}

}  // namespace windlass
