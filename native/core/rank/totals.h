// SPDX-License-Identifier: Apache-2.0
// Sums over a rank's recorded operations that have ended, by kind. The thread inside the rank's
// operation writes them. Any thread reads them.
#pragma once

#include <atomic>
#include <cstdint>

#include "windlass/windlass.h"

namespace windlass {

class Totals {
 public:
  struct alignas(32) Sums {
    std::atomic<uint64_t> calls;
    std::atomic<uint64_t> failures;
    std::atomic<uint64_t> bytes;
    std::atomic<uint64_t> waitedNs;
  };

  // Called by the thread inside the operation only.
  void add(int32_t operation, bool failed, uint64_t bytes, int64_t waitedNs) {
    Sums& sums = sums_[operation];
    grow(sums.calls, 1);
    if (failed) grow(sums.failures, 1);
    grow(sums.bytes, bytes);
    grow(sums.waitedNs, static_cast<uint64_t>(waitedNs));
  }
  // Thread-safe. The four sums may differ by the operation that ends meanwhile.
  const Sums& of(int32_t operation) const { return sums_[operation]; }

 private:
  // One thread at a time writes, so this needs no locked instruction.
  static void grow(std::atomic<uint64_t>& sum, uint64_t by) {
    sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  Sums sums_[WL_OP_COUNT] = {};
};

}  // namespace windlass
