// SPDX-License-Identifier: Apache-2.0
// Strided copies: rows of bytes where both sides are contiguous, transposed squares where each side
// is along another dimension, single elements elsewhere.
#include <cstring>
#include <utility>

#include "native/isa/sim/fused.h"
#include "native/isa/sim/transpose.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

template <size_t N>
inline void copyElement(unsigned char* d, const unsigned char* s) {
  unsigned char element[N];
  __builtin_memcpy(element, s, N);
  __builtin_memcpy(d, element, N);
}

// Two dimensions of elements (or of rows) of N bytes.
template <size_t N>
void copyPlane(unsigned char* d, int64_t dOuter, int64_t dInner, const unsigned char* s,
               int64_t sOuter, int64_t sInner, int64_t outer, int64_t inner) {
  for (int64_t i = 0; i < outer; ++i) {
    unsigned char* to = d + i * dOuter;
    const unsigned char* from = s + i * sOuter;
    for (int64_t k = 0; k < inner; ++k) copyElement<N>(to + k * dInner, from + k * sInner);
  }
}

void copyRows(unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep, int64_t rows,
              size_t rowBytes) {
  switch (rowBytes) {
    case 1:
      return copyPlane<1>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 2:
      return copyPlane<2>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 4:
      return copyPlane<4>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 8:
      return copyPlane<8>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 16:
      return copyPlane<16>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 32:
      return copyPlane<32>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 64:
      return copyPlane<64>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 128:
      return copyPlane<128>(d, 0, dStep, s, 0, sStep, 1, rows);
    default:
      for (int64_t i = 0; i < rows; ++i) copyBytes(d + i * dStep, s + i * sStep, rowBytes);
  }
}

struct Dimension {
  int64_t extent;
  int64_t dst;  // steps, in bytes
  int64_t src;
};

template <size_t N>
void copyElements(unsigned char* d, const unsigned char* s, Dimension outer, Dimension inner) {
  constexpr auto kBytes = static_cast<int64_t>(N);
  if (outer.dst == kBytes && inner.src == kBytes) std::swap(outer, inner);
  if (inner.dst == kBytes && outer.src == kBytes) {
    transposePlane<N>(d, outer.dst, s, inner.src, outer.extent, inner.extent);
  } else {
    copyPlane<N>(d, outer.dst, inner.dst, s, outer.src, inner.src, outer.extent, inner.extent);
  }
}

void copyElements(unsigned char* d, const unsigned char* s, const Dimension& outer,
                  const Dimension& inner, size_t bytes) {
  switch (bytes) {
    case 1:
      return copyElements<1>(d, s, outer, inner);
    case 2:
      return copyElements<2>(d, s, outer, inner);
    case 4:
      return copyElements<4>(d, s, outer, inner);
    default:
      return copyElements<8>(d, s, outer, inner);
  }
}

// A copy within the second-level cache of common CPUs: there the C library, which may use the
// string instructions, is at least as fast as a loop of vector registers.
constexpr size_t kLibraryCopyMin = size_t{24} << 10;
constexpr size_t kLibraryCopyMax = size_t{320} << 10;

}  // namespace

void copyStrided(unsigned char* dst, const ByteStrides& dstStep, const unsigned char* src,
                 const ByteStrides& srcStep, const int64_t* extent, uint32_t ndim,
                 size_t elementBytes) noexcept {
  Dimension dims[kMaxDims];
  uint32_t count = 0;
  for (uint32_t d = 0; d < ndim; ++d) {
    if (extent[d] != 1) dims[count++] = {extent[d], dstStep.step[d], srcStep.step[d]};
  }
  // The innermost dimensions that are contiguous on both sides make rows.
  const auto element = static_cast<int64_t>(elementBytes);
  int64_t rowBytes = element;
  while (count > 0 && dims[count - 1].dst == rowBytes && dims[count - 1].src == rowBytes) {
    rowBytes *= dims[--count].extent;
  }
  if (count == 0) {
    copyBytes(dst, src, static_cast<size_t>(rowBytes));
    return;
  }
  const bool plane = rowBytes == element && count > 1;
  if (plane) {
    // The dimension along which the other side is contiguous comes next to the innermost.
    for (uint32_t d = 0; d + 2 < count; ++d) {
      if (dims[d].src == element || dims[d].dst == element) std::swap(dims[d], dims[count - 2]);
    }
  }
  const uint32_t outer = count - (plane ? 2 : 1);
  int64_t index[kMaxDims] = {};
  for (;;) {
    if (plane) {
      copyElements(dst, src, dims[outer], dims[outer + 1], elementBytes);
    } else {
      copyRows(dst, dims[outer].dst, src, dims[outer].src, dims[outer].extent,
               static_cast<size_t>(rowBytes));
    }
    uint32_t d = outer;
    for (;;) {
      if (d == 0) return;
      --d;
      dst += dims[d].dst;
      src += dims[d].src;
      if (++index[d] < dims[d].extent) break;
      dst -= dims[d].dst * dims[d].extent;
      src -= dims[d].src * dims[d].extent;
      index[d] = 0;
    }
  }
}

void detail::copyLong(void* dst, const void* src, size_t bytes) noexcept {
  if (bytes >= kLibraryCopyMin && bytes <= kLibraryCopyMax) {
    std::memcpy(dst, src, bytes);
  } else {
    activeTable().copy(dst, src, bytes);
  }
}

}  // namespace windlass
