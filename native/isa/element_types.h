// SPDX-License-Identifier: Apache-2.0
// C++ types of elements, and their dtypes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "windlass/kernel.h"

namespace windlass {

// Storage types for floats that C++17 lacks. They hold only the bits.
struct half {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
};
struct float8_e5m2_t {
  uint8_t bits;
};
struct float8_e4m3_t {
  uint8_t bits;
};

template <typename T>
struct DTypeOf;
#define WINDLASS_DTYPE_OF(type, name)           \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  }
WINDLASS_DTYPE_OF(bool, kBool);
WINDLASS_DTYPE_OF(uint8_t, kU8);
WINDLASS_DTYPE_OF(int8_t, kI8);
WINDLASS_DTYPE_OF(float8_e5m2_t, kF8E5M2);
WINDLASS_DTYPE_OF(float8_e4m3_t, kF8E4M3);
WINDLASS_DTYPE_OF(int16_t, kI16);
WINDLASS_DTYPE_OF(uint16_t, kU16);
WINDLASS_DTYPE_OF(half, kF16);
WINDLASS_DTYPE_OF(bfloat16_t, kBF16);
WINDLASS_DTYPE_OF(int32_t, kI32);
WINDLASS_DTYPE_OF(uint32_t, kU32);
WINDLASS_DTYPE_OF(float, kF32);
WINDLASS_DTYPE_OF(double, kF64);
WINDLASS_DTYPE_OF(int64_t, kI64);
WINDLASS_DTYPE_OF(uint64_t, kU64);
#undef WINDLASS_DTYPE_OF

// True if targets add elements to memory atomically.
template <typename T>
constexpr bool kAddsAtomically = std::is_same_v<T, float> || std::is_same_v<T, half> ||
                                 std::is_same_v<T, bfloat16_t> || std::is_same_v<T, int32_t> ||
                                 std::is_same_v<T, int16_t> || std::is_same_v<T, int8_t>;

}  // namespace windlass
