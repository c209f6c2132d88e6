// SPDX-License-Identifier: Apache-2.0
// Which calls of a driver or a runtime a test has fail, one at a time.
#pragma once

#include <cstdlib>
#include <vector>

namespace windlass_test {

// Of `count` calls of one function, the first and the last: that of whoever comes first, and one
// of the last phase that has any. In the long form all of them.
inline std::vector<int> callsToFail(int count) {
  std::vector<int> numbers;
  const int step = std::getenv("WINDLASS_TEST_LONG") != nullptr ? 1 : count - 1;
  for (int number = 1; number <= count; number += step > 0 ? step : 1) numbers.push_back(number);
  return numbers;
}

}  // namespace windlass_test
