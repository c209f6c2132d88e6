// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC and deadlines.
#pragma once

#include <time.h>

#include <cstdint>

namespace windlass {

// Number of polls of a spinning thread between two reads of the clock.
constexpr int kLooksBetweenClocks = 128;

inline int64_t clockNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Starts at startNs, or at the first call of left() if startNs is 0. An operation that never waits
// then never reads the clock.
class Deadline {
 public:
  explicit Deadline(int64_t limitNs, int64_t startNs = 0) : limitNs_(limitNs), startNs_(startNs) {}

  int64_t limitNs() const { return limitNs_; }
  // Nanoseconds left at `now`; zero or less after the deadline.
  int64_t left(int64_t now) {
    if (startNs_ == 0) startNs_ = now;
    return limitNs_ - (now - startNs_);
  }

 private:
  int64_t limitNs_;
  int64_t startNs_;
};

}  // namespace windlass
