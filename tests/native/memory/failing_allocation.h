// SPDX-License-Identifier: Apache-2.0
// Makes an allocation of the calling thread fail.
#pragma once

namespace windlass_test {

// While one lives, the `number`-th allocation of this thread from then on, and no other, fails.
class FailingAllocation {
 public:
  explicit FailingAllocation(int number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  // Whether there were so many.
  static bool happened();
};

}  // namespace windlass_test
