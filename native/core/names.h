// SPDX-License-Identifier: Apache-2.0
// Names of operations and algorithms in messages.
#pragma once

#include <cstdint>
#include <string_view>

namespace windlass {

const char* operationName(int32_t operation);
const char* algorithmName(int32_t algorithm);
// The operation with this name in messages; WL_OP_NONE: none.
int32_t operationNamed(std::string_view name);

// The name of an operation's call: "allGather" for the operation that messages of several ranks
// name "all-gather".
class CallName {
 public:
  explicit CallName(const char* operation) {
    uint32_t length = 0;
    for (const char* at = operation; *at != 0 && length + 1 < sizeof text_; ++at) {
      const bool begins = at[0] == '-' && at[1] != 0;
      // A word of one letter, as in "all-gather-v", stays as it is.
      if (begins) ++at;
      text_[length++] = begins && at[1] != 0 ? static_cast<char>(*at - 'a' + 'A') : *at;
    }
    text_[length] = 0;
  }
  const char* text() const { return text_; }

 private:
  char text_[32];
};

}  // namespace windlass
