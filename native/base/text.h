// SPDX-License-Identifier: Apache-2.0
// Text in buffers of a fixed size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace windlass {

// Converts a number for %llu or %lld.
constexpr unsigned long long text(uint64_t value) {
  return value;
}
constexpr long long text(int64_t value) {
  return value;
}

// Appends to a buffer and truncates at its end.
class Text {
 public:
  Text(char* text, size_t room) : at_(text), left_(room) { *text = 0; }
  void add(const char* format, ...) __attribute__((format(printf, 2, 3)));

 private:
  char* at_;
  size_t left_;
};

}  // namespace windlass
