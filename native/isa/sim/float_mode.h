// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace windlass {

// The register that controls rounding, subnormals and NaNs.
#if defined(__x86_64__)
struct FloatMode {
  static constexpr uint64_t kDefault = 0x1f80;
  static constexpr uint64_t kStickyFlags = 0x3f;
  static uint64_t read() noexcept { return _mm_getcsr(); }
  static void write(uint64_t mode) noexcept { _mm_setcsr(static_cast<unsigned>(mode)); }
};
#elif defined(__aarch64__)
struct FloatMode {
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kStickyFlags = 0;  // in a separate register
  static uint64_t read() noexcept {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(uint64_t mode) noexcept {
    __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory");
  }
};
#else
#error "name here where this processor keeps its rounding and how it treats subnormals"
#endif

// During its lifetime, floats round to nearest even and keep subnormals, regardless of the caller's
// settings.
class DefaultFloatMode {
 public:
  DefaultFloatMode() noexcept : saved_(FloatMode::read()) {
    if (changed()) FloatMode::write(FloatMode::kDefault);
  }
  ~DefaultFloatMode() {
    if (changed()) FloatMode::write(saved_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  bool changed() const noexcept {
    return (saved_ & ~FloatMode::kStickyFlags) != FloatMode::kDefault;
  }
  const uint64_t saved_;
};

}  // namespace windlass
