// SPDX-License-Identifier: Apache-2.0
// Which calls of a driver or a runtime a test has fail, one at a time.
#pragma once

#include <cstdlib>
#include <vector>

namespace windlass_test {

// Of `count` calls of one function, the first and the last: that of whoever comes first, and one
// of the last phase that has any. A sanitizer, under which it takes long, has the last alone, after
// which there is most to give back. In the long form all of them.
inline std::vector<int> callsToFail(int count) {
  const bool isLong = std::getenv("WINDLASS_TEST_LONG") != nullptr;
  std::vector<int> numbers;
  for (int number = 1; number <= count; ++number) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const bool isOne = number == count;
#else
    const bool isOne = number == 1 || number == count;
#endif
    if (isLong || isOne) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace windlass_test
