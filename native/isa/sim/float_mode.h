// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace windlass {

// While it lives, floats round to nearest even and keep subnormals, whatever the caller has set.
class DefaultFloatMode {
 public:
#if defined(__x86_64__)
  DefaultFloatMode() noexcept : saved_(_mm_getcsr()) {
    if (changed()) _mm_setcsr(kDefault);
  }
  ~DefaultFloatMode() {
    if (changed()) _mm_setcsr(saved_);
  }
#else
  DefaultFloatMode() noexcept = default;
#endif
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned kDefault = 0x1f80;
  static constexpr unsigned kStickyFlags = 0x3f;
  bool changed() const noexcept {
    return (saved_ & ~kStickyFlags) != kDefault;
  }
  unsigned saved_;
#endif
};

}  // namespace windlass
