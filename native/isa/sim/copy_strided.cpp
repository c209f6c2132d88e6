// SPDX-License-Identifier: Apache-2.0
// Strided copies: rows of bytes where both sides are contiguous, single elements elsewhere.
#include "native/isa/sim/fused.h"
#include "native/isa/sim/traversal.h"

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
    case 1: return copyPlane<1>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 2: return copyPlane<2>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 4: return copyPlane<4>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 8: return copyPlane<8>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 16: return copyPlane<16>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 32: return copyPlane<32>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 64: return copyPlane<64>(d, 0, dStep, s, 0, sStep, 1, rows);
    case 128: return copyPlane<128>(d, 0, dStep, s, 0, sStep, 1, rows);
    default:
      for (int64_t i = 0; i < rows; ++i) copyBytes(d + i * dStep, s + i * sStep, rowBytes);
  }
}

void copyElements(unsigned char* d, int64_t dOuter, int64_t dInner, const unsigned char* s,
                  int64_t sOuter, int64_t sInner, int64_t outer, int64_t inner, size_t bytes) {
  switch (bytes) {
    case 1: return copyPlane<1>(d, dOuter, dInner, s, sOuter, sInner, outer, inner);
    case 2: return copyPlane<2>(d, dOuter, dInner, s, sOuter, sInner, outer, inner);
    case 4: return copyPlane<4>(d, dOuter, dInner, s, sOuter, sInner, outer, inner);
    default: return copyPlane<8>(d, dOuter, dInner, s, sOuter, sInner, outer, inner);
  }
}

}  // namespace

void copyStrided(unsigned char* dst, const ByteStrides& dstStep, const unsigned char* src,
                 const ByteStrides& srcStep, const int64_t* extent, uint32_t ndim,
                 size_t elementBytes) noexcept {
  // The innermost dimensions that are contiguous on both sides make rows.
  auto rowBytes = static_cast<int64_t>(elementBytes);
  while (ndim > 0 && (extent[ndim - 1] == 1 || (dstStep.step[ndim - 1] == rowBytes &&
                                                srcStep.step[ndim - 1] == rowBytes))) {
    rowBytes *= extent[--ndim];
  }
  if (ndim == 0) {
    copyBytes(dst, src, static_cast<size_t>(rowBytes));
    return;
  }
  const bool single = rowBytes == static_cast<int64_t>(elementBytes);
  const uint32_t plane = single && ndim > 1 ? 2 : 1;  // dimensions copied by one call
  int64_t index[kMaxDims] = {};
  const uint32_t outer = ndim - plane;
  for (;;) {
    if (plane == 2) {
      copyElements(dst, dstStep.step[outer], dstStep.step[outer + 1], src, srcStep.step[outer],
                   srcStep.step[outer + 1], extent[outer], extent[outer + 1], elementBytes);
    } else {
      copyRows(dst, dstStep.step[outer], src, srcStep.step[outer], extent[outer],
               static_cast<size_t>(rowBytes));
    }
    uint32_t d = outer;
    for (;;) {
      if (d == 0) return;
      --d;
      dst += dstStep.step[d];
      src += srcStep.step[d];
      if (++index[d] < extent[d]) break;
      dst -= dstStep.step[d] * extent[d];
      src -= srcStep.step[d] * extent[d];
      index[d] = 0;
    }
  }
}

}  // namespace windlass
