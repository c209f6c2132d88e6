// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace windlass {

// Owns an open file descriptor and closes it.
class OpenFile {
 public:
  explicit OpenFile(int number = -1) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OpenFile() {
    if (number_ >= 0) close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Makes an eventfd readable. A full one already is.
inline void ringBell(const OpenFile& bell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell.number(), &one, sizeof one);
}

}  // namespace windlass
