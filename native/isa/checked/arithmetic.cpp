// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/arithmetic.h"

#include <cmath>
#include <vector>

#include "native/base/dtype.h"
#include "native/isa/sim/loops.h"

namespace windlass::checked {
namespace {

// A tile's valid part, or contiguous elements.
struct View {
  int64_t shape[2];
  int64_t strides[2];
  void* data;
  DType dtype;

  View(unsigned char* buffer, const TileRef& tile)
      : shape{tile.validRows, tile.validColumns},
        strides{tile.columns, 1},
        data(buffer + tile.at.offset),
        dtype(tile.dtype) {}
  View(void* elements, DType of, const TileRef& like)
      : shape{like.validRows, like.validColumns},
        strides{like.validColumns, 1},
        data(elements),
        dtype(of) {}

  StridedView view() const { return {data, dtype, 2, shape, strides}; }
};

size_t countOf(const TileRef& tile) {
  return static_cast<size_t>(tile.validRows * tile.validColumns);
}

// Copies the tile's elements to a contiguous buffer.
std::vector<unsigned char> packed(unsigned char* buffer, const TileRef& tile) {
  std::vector<unsigned char> elements(tile.validBytes());
  TMOVE_CVT(View(elements.data(), tile.dtype, tile).view(), View(buffer, tile).view());
  return elements;
}

std::vector<unsigned char> repeated(const TileRef& like, uint64_t scalar) {
  const size_t size = sizeOf(like.dtype);
  std::vector<unsigned char> elements(countOf(like) * size);
  for (size_t at = 0; at < elements.size(); at += size) {
    __builtin_memcpy(&elements[at], &scalar, size);
  }
  return elements;
}

// dst = a op b, for any elements b of a's dtype.
void fold(unsigned char* buffer, ReduceOp op, const TileRef& dst, const TileRef& a,
          const View& b) {
  const View out(buffer, dst);
  const View left(buffer, a);
  const StridedView target = out.view();
  const StridedView sources[2] = {left.view(), b.view()};
  TFOLD(&target, 1, sources, 2, op);
}

struct IntegerRange {
  long double least;
  long double most;
};

IntegerRange rangeOf(DType dtype) {
  const int bits = static_cast<int>(sizeOf(dtype)) * 8;
  if (isUnsigned(dtype)) {
    return {0, std::ldexp(1.0L, bits) - 1};
  }
  return {-std::ldexp(1.0L, bits - 1), std::ldexp(1.0L, bits - 1) - 1};
}

// Exact value of an element of any dtype except f64, u64 and c64.
long double valueOf(const unsigned char* element, DType dtype) {
  if (!isFloat(dtype)) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, element, sizeOf(dtype));
    if (isUnsigned(dtype)) return bits;
    const size_t unused = 64 - sizeOf(dtype) * 8;
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  double value = 0;
  TMOVE_CVT({&value, DType::kF64, 0, nullptr, nullptr},
            {const_cast<unsigned char*>(element), dtype, 0, nullptr, nullptr});
  return value;
}

long double toInteger(long double value, pto::RoundMode mode) {
  switch (mode) {
    case pto::RoundMode::CAST_NONE:
    case pto::RoundMode::CAST_TRUNC:
      return std::trunc(value);
    case pto::RoundMode::CAST_FLOOR:
      return std::floor(value);
    case pto::RoundMode::CAST_CEIL:
      return std::ceil(value);
    case pto::RoundMode::CAST_ROUND:
      return std::round(value);
    case pto::RoundMode::CAST_RINT: {
      const long double below = std::floor(value);
      const long double rest = value - below;
      const bool up = rest > 0.5L || (rest == 0.5L && std::fmod(below, 2.0L) != 0);
      return up ? below + 1 : below;
    }
    case pto::RoundMode::CAST_ODD: {
      const long double cut = std::trunc(value);
      const bool odd = cut == value || std::fmod(cut, 2.0L) != 0;
      return odd ? cut : cut + (value < 0 ? -1 : 1);
    }
  }
  return value;
}

void writeFloat(unsigned char* element, DType dtype, long double value, pto::RoundMode mode) {
  if (std::isfinite(value) && value != 0) {
    const FloatPlaces places = placesOf(dtype);
    const int exponent = std::max(std::ilogb(value), places.leastExponent);
    const int place = exponent - places.mantissaBits;
    const long double rounded = std::ldexp(toInteger(std::ldexp(value, -place), mode), place);
    value = std::copysign(rounded, value);
  }
  // The value is exact now, except that it may overflow.
  auto exact = static_cast<double>(value);
  TMOVE_CVT({element, dtype, 0, nullptr, nullptr}, {&exact, DType::kF64, 0, nullptr, nullptr});
}

long double clamped(long double value, const IntegerRange& range) {
  return value < range.least ? range.least : (value > range.most ? range.most : value);
}

void writeInteger(unsigned char* element, DType dtype, long double value, bool saturates) {
  if (std::isnan(value)) value = 0;
  value = clamped(value, rangeOf(saturates ? dtype : DType::kI64));
  const auto whole = static_cast<int64_t>(value);
  __builtin_memcpy(element, &whole, sizeOf(dtype));
}

}  // namespace

void combine(unsigned char* buffer, Op op, const TileRef& dst, const TileRef& a, const TileRef& b) {
  if (op != Op::kSub) return fold(buffer, reduceOpOf(op), dst, a, View(buffer, b));
  std::vector<unsigned char> right = packed(buffer, b);
  const size_t size = sizeOf(b.dtype);
  for (size_t at = 0; at < right.size(); at += size) {
    uint64_t element = 0;
    __builtin_memcpy(&element, &right[at], size);
    element = isFloat(b.dtype) ? element ^ uint64_t{1} << (size * 8 - 1) : 0 - element;
    __builtin_memcpy(&right[at], &element, size);
  }
  fold(buffer, ReduceOp::kSum, dst, a, View(right.data(), a.dtype, a));
}

void combineScalar(unsigned char* buffer, Op op, const TileRef& dst, const TileRef& a,
                   uint64_t scalar) {
  if (op != Op::kDivScalar) {
    std::vector<unsigned char> right = repeated(a, scalar);
    return fold(buffer, reduceOpOf(op), dst, a, View(right.data(), a.dtype, a));
  }
  unsigned char bytes[sizeof scalar];
  __builtin_memcpy(bytes, &scalar, sizeof scalar);
  const auto divisor = static_cast<float>(valueOf(bytes, a.dtype));
  const std::vector<unsigned char> elements = packed(buffer, a);
  std::vector<float> quotients(countOf(a));
  for (size_t i = 0; i < quotients.size(); ++i) {
    const size_t size = sizeOf(a.dtype);
    quotients[i] = static_cast<float>(valueOf(&elements[i * size], a.dtype)) / divisor;
  }
  TMOVE_CVT(View(buffer, dst).view(), View(quotients.data(), DType::kF32, dst).view());
}

void fill(unsigned char* buffer, const TileRef& dst, uint64_t scalar) {
  std::vector<unsigned char> elements = repeated(dst, scalar);
  TMOVE_CVT(View(buffer, dst).view(), View(elements.data(), dst.dtype, dst).view());
}

void move(unsigned char* buffer, const TileRef& dst, const TileRef& src) {
  TMOVE_CVT(View(buffer, dst).view(), View(buffer, src).view());
}

Conversion conversionOf(const Architecture& architecture, DType from, DType to, pto::RoundMode mode,
                        const pto::SaturationMode* saturation) {
  const bool wraps = castWraps(from, to);
  const bool obeys = saturation != nullptr && (wraps || architecture.castScratchBytes == 0);
  return {roundModeOf(from, to, mode), obeys ? *saturation == pto::SaturationMode::ON : !wraps};
}

void convert(unsigned char* buffer, const TileRef& dst, const TileRef& src,
             const Conversion& conversion) {
  std::vector<unsigned char> from = packed(buffer, src);
  const bool isNearest = conversion.mode == pto::RoundMode::CAST_RINT;
  if (isNearest && isFloat(src.dtype) && isFloat(dst.dtype)) {
    TMOVE_CVT(View(buffer, dst).view(), View(from.data(), src.dtype, src).view());
    return;
  }
  std::vector<unsigned char> to(dst.validBytes());
  const size_t fromBytes = sizeOf(src.dtype);
  const size_t toBytes = sizeOf(dst.dtype);
  for (size_t i = 0; i < countOf(src); ++i) {
    const long double value = valueOf(&from[i * fromBytes], src.dtype);
    unsigned char* element = &to[i * toBytes];
    if (isFloat(dst.dtype)) {
      writeFloat(element, dst.dtype, value, conversion.mode);
    } else {
      writeInteger(element, dst.dtype, toInteger(value, conversion.mode), conversion.saturates);
    }
  }
  TMOVE_CVT(View(buffer, dst).view(), View(to.data(), dst.dtype, dst).view());
}

}  // namespace windlass::checked
