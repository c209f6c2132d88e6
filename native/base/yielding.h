// SPDX-License-Identifier: Apache-2.0
// Short waits for another thread. The waiting thread yields its core and polls before it sleeps,
// since sleeping and waking take tens of microseconds.
#pragma once

#include <sched.h>

#include <cstdint>
#include <mutex>

#include "native/base/clock.h"

namespace windlass {

// Blocks until holds() is true, for at most forNs. Returns whether it is true.
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

// Takes a lock that other threads hold only briefly.
inline std::unique_lock<std::mutex> lockYielding(std::mutex& mutex) {
  constexpr int64_t kForNs = 1'000'000;
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  if (!yieldUntil([&] { return lock.try_lock(); }, kForNs)) lock.lock();
  return lock;
}

}  // namespace windlass
