// SPDX-License-Identifier: Apache-2.0
// Which calls of a driver or a runtime a test has fail, one at a time.
#pragma once

#include <cstdlib>
#include <vector>

namespace windlass_test {

// Calls of a function that fail: the first, the last (after which most must be freed), or both.
enum class Failing { kFirst, kLast, kBoth };

// Numbers of the calls that fail, of `count` calls of one function. Under a sanitizer it is only
// the last one; the long form has all.
inline std::vector<int> callsToFail(int count, Failing which) {
  const bool isLong = std::getenv("WINDLASS_TEST_LONG") != nullptr;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  which = Failing::kLast;
#endif
  std::vector<int> numbers;
  for (int number = 1; number <= count; ++number) {
    const bool isFirst = number == 1 && which != Failing::kLast;
    const bool isLast = number == count && which != Failing::kFirst;
    if (isLong || isFirst || isLast) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace windlass_test
