// SPDX-License-Identifier: Apache-2.0
// Slow, obvious arithmetic that the vector loops are compared with: casts by integers alone, folds
// one element at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "native/isa/element_types.h"
#include "native/isa/lists.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"

namespace windlass::reference {

struct Format {
  DType dtype;
  const char* name;
  int bits;
  int mantissa;  // stored bits
  int bias;
  uint64_t maxFinite;
  uint64_t overflow;  // infinity, or the greatest finite number
  uint64_t nan;
};

constexpr Format kFormats[] = {
    {DType::kF64, "f64", 64, 52, 1023, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000},
    {DType::kF32, "f32", 32, 23, 127, 0x7f7fffff, 0x7f800000, 0x7fc00000},
    {DType::kF16, "f16", 16, 10, 15, 0x7bff, 0x7c00, 0x7e00},
    {DType::kBF16, "bf16", 16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0},
    {DType::kF8E5M2, "f8e5m2", 8, 2, 15, 0x7b, 0x7c, 0x7e},
    {DType::kF8E4M3, "f8e4m3", 8, 3, 7, 0x7e, 0x7e, 0x7f},
};

inline const Format* formatOf(DType dtype) {
  for (const Format& f : kFormats) {
    if (f.dtype == dtype) return &f;
  }
  return nullptr;
}

// magnitude * 2^exponent; magnitude < 2^53.
struct Exact {
  bool negative = false;
  bool nan = false;
  bool infinite = false;
  uint64_t magnitude = 0;
  int exponent = 0;
};

inline Exact decode(const Format& f, uint64_t code) {
  Exact x;
  const uint64_t sign = uint64_t{1} << (f.bits - 1);
  x.negative = (code & sign) != 0;
  code &= sign - 1;
  if (code > f.maxFinite) {
    x.infinite = code == f.overflow;
    x.nan = !x.infinite;
    return x;
  }
  const uint64_t hidden = uint64_t{1} << f.mantissa;
  const int biased = static_cast<int>(code >> f.mantissa);
  x.magnitude = (code & (hidden - 1)) + (biased > 0 ? hidden : 0);
  x.exponent = (biased > 0 ? biased : 1) - f.bias - f.mantissa;
  return x;
}

inline uint64_t encode(const Format& f, const Exact& x) {
  const uint64_t sign = x.negative ? uint64_t{1} << (f.bits - 1) : 0;
  if (x.nan) return f.nan;
  if (x.infinite) return sign | f.overflow;
  if (x.magnitude == 0) return sign;
  const int top = 63 - __builtin_clzll(x.magnitude);  // position of the leading bit
  const int least = 1 - f.bias - f.mantissa;
  int place = x.exponent + top - f.mantissa;  // exponent of the result's last place
  if (place < least) place = least;
  const int shift = place - x.exponent;
  uint64_t q = 0;
  if (shift <= 0) {
    q = x.magnitude << -shift;
  } else if (shift <= 54) {
    q = x.magnitude >> shift;
    const uint64_t rest = x.magnitude - (q << shift);
    const uint64_t tie = uint64_t{1} << (shift - 1);
    if (rest > tie || (rest == tie && (q & 1) != 0)) ++q;
  }
  const uint64_t hidden = uint64_t{1} << f.mantissa;
  uint64_t code = q;
  if (q >= hidden) code = (static_cast<uint64_t>(place - least + 1) << f.mantissa) + (q - hidden);
  return sign | (code > f.maxFinite ? f.overflow : code);
}

inline uint64_t cast(DType from, DType to, uint64_t code) {
  if (from == to) return code;
  return encode(*formatOf(to), decode(*formatOf(from), code));
}

inline uint64_t loadElement(const void* at, uint64_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

template <typename T>
T fromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
uint64_t toBits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename F>
F combineFloat(F a, F b, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMax:
      if (a != a || b != b) return a + b;
      if (a == b) return std::signbit(a) ? b : a;
      return a > b ? a : b;
    case ReduceOp::kMin:
      if (a != a || b != b) return a + b;
      if (a == b) return std::signbit(a) ? a : b;
      return a < b ? a : b;
    default:
      break;
  }
  return a;
}

template <typename F>
uint64_t foldFloats(DType dtype, DType accumulator, const std::vector<uint64_t>& codes,
                    ReduceOp op) {
  F value = fromBits<F>(cast(dtype, accumulator, codes[0]));
  for (size_t i = 1; i < codes.size(); ++i) {
    value = combineFloat<F>(value, fromBits<F>(cast(dtype, accumulator, codes[i])), op);
  }
  if (op == ReduceOp::kAvg) value /= static_cast<F>(codes.size());
  const Format& wide = *formatOf(accumulator);
  const uint64_t bits = value != value ? wide.nan : toBits(value);
  return cast(accumulator, dtype, bits);
}

template <typename T>
uint64_t foldIntegers(const std::vector<uint64_t>& codes, ReduceOp op) {
  T value = fromBits<T>(codes[0]);
  for (size_t i = 1; i < codes.size(); ++i) {
    const T next = fromBits<T>(codes[i]);
    switch (op) {
      case ReduceOp::kSum:
        value = static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(next));
        break;
      case ReduceOp::kProduct:
        value = static_cast<T>(static_cast<uint64_t>(value) * static_cast<uint64_t>(next));
        break;
      case ReduceOp::kMax:
        value = next > value ? next : value;
        break;
      case ReduceOp::kMin:
        value = next < value ? next : value;
        break;
      case ReduceOp::kAnd:
        value = static_cast<T>(value & next);
        break;
      case ReduceOp::kOr:
        value = static_cast<T>(value | next);
        break;
      case ReduceOp::kXor:
        value = static_cast<T>(value ^ next);
        break;
      default:
        break;
    }
  }
  return toBits(value);
}

inline uint64_t fold(DType dtype, const std::vector<uint64_t>& codes, ReduceOp op) {
  switch (dtype) {
    case DType::kF64:
      return foldFloats<double>(dtype, dtype, codes, op);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E5M2:
    case DType::kF8E4M3:
      return foldFloats<float>(dtype, DType::kF32, codes, op);
    case DType::kBool:
    case DType::kU8:
      return foldIntegers<uint8_t>(codes, op);
    case DType::kI8:
      return foldIntegers<int8_t>(codes, op);
    case DType::kU16:
      return foldIntegers<uint16_t>(codes, op);
    case DType::kI16:
      return foldIntegers<int16_t>(codes, op);
    case DType::kU32:
      return foldIntegers<uint32_t>(codes, op);
    case DType::kI32:
      return foldIntegers<int32_t>(codes, op);
    case DType::kU64:
      return foldIntegers<uint64_t>(codes, op);
    case DType::kI64:
      return foldIntegers<int64_t>(codes, op);
    default:
      return 0;
  }
}

// Whether few of a table's lengths and values do: a sanitizer sees the same accesses with them, and
// its long form has all.
inline bool few() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return std::getenv("WINDLASS_TEST_LONG") == nullptr;
#else
  return false;
#endif
}

// The seed of a random test: WINDLASS_SEED, or a fresh one.
inline uint64_t testSeed() {
  const char* given = std::getenv("WINDLASS_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

// Zeros, subnormals, values around 1 and around the limits, infinities and NaNs as often as not.
inline uint64_t randomElement(DType dtype, std::mt19937_64& random) {
  const uint64_t bits = random();
  const uint64_t bytes = sizeOf(dtype);
  const uint64_t mask = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (bytes * 8)) - 1;
  if (dtype == DType::kBool) return bits & 1;
  const Format* f = formatOf(dtype);
  if (f == nullptr || bits % 2 == 0) return random() & mask;
  const uint64_t one = static_cast<uint64_t>(f->bias) << f->mantissa;
  const uint64_t limit = uint64_t{1} << (f->bits - 1);
  const uint64_t least = uint64_t{1} << f->mantissa;
  const uint64_t centres[] = {0, least, one, f->maxFinite, f->nan, f->overflow};
  const uint64_t near = centres[(bits >> 8) % 6] + (bits >> 16) % 5 - 2;
  return (near & (limit - 1)) | ((bits >> 32) % 2 == 0 ? 0 : limit);
}

struct NamedPath {
  Path path;
  const VectorTable* table;
};

// Every path that this CPU has.
inline std::vector<NamedPath> availablePaths() {
  std::vector<NamedPath> paths;
  for (int i = 0; i < kPathCount; ++i) {
    const auto path = static_cast<Path>(i);
    if (const VectorTable* table = tableFor(path)) paths.push_back({path, table});
  }
  return paths;
}

inline StridedView flat(void* data, DType dtype, const int64_t* count) {
  static const int64_t one = 1;
  return {data, dtype, 1, count, &one};
}

}  // namespace windlass::reference
