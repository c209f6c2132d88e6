// SPDX-License-Identifier: Apache-2.0
// Strided copies: rows of bytes if both sides are contiguous, transposed planes if each side is
// contiguous along another dimension, and otherwise single elements.
#include <algorithm>
#include <cstring>
#include <utility>

#include "native/base/copy.h"
#include "native/base/cpu.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/phase_scope.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

constexpr int64_t kLineBytes = kStreamedBytes;

template <size_t N>
inline void copyElement(unsigned char* d, const unsigned char* s) {
  unsigned char element[N];
  __builtin_memcpy(element, s, N);
  __builtin_memcpy(d, element, N);
}

// Copies two dimensions of elements or rows of N bytes.
template <size_t N>
void copyPlane(unsigned char* d, int64_t dOuter, int64_t dInner, const unsigned char* s,
               int64_t sOuter, int64_t sInner, int64_t outer, int64_t inner) {
  for (int64_t i = 0; i < outer; ++i) {
    unsigned char* to = d + i * dOuter;
    const unsigned char* from = s + i * sOuter;
    for (int64_t k = 0; k < inner; ++k) copyElement<N>(to + k * dInner, from + k * sInner);
  }
}

// If rows are further apart than kFarStep, the CPU's prefetcher doesn't detect a stream. Rows of up
// to kLongestFarRow bytes are prefetched on both sides.
constexpr int64_t kFarStep = 2 * kLineBytes;
constexpr size_t kLongestFarRow = 1024;

// copyRow(to, from) copies one row.
template <class CopyRow>
inline void copyFarRows(unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep,
                        int64_t rows, size_t rowBytes, const CopyRow& copyRow) {
  const int64_t ahead = rowsAhead(rowBytes);
  for (int64_t i = 0; i < rows; ++i, d += dStep, s += sStep) {
    for (size_t at = 0; at < rowBytes; at += kLineBytes) {
      __builtin_prefetch(s + ahead * sStep + at);
      __builtin_prefetch(d + ahead * dStep + at, 1);
    }
    copyRow(d, s);
  }
}

inline bool far(int64_t dStep, int64_t sStep) {
  return dStep > kFarStep || sStep > kFarStep;
}

template <size_t N>
void copyRowsOf(unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep,
                int64_t rows) {
  if (far(dStep, sStep)) {
    copyFarRows(d, dStep, s, sStep, rows, N, copyElement<N>);
  } else {
    copyPlane<N>(d, 0, dStep, s, 0, sStep, 1, rows);
  }
}

// Streams rows of whole cache lines. The destination is aligned to lines.
void streamRows(unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep,
                int64_t rows, size_t rowBytes) {
  if (rowBytes > kLongestFarRow) {
    const CopyLoop stream = activeTable().stream;
    for (int64_t i = 0; i < rows; ++i) stream(d + i * dStep, s + i * sStep, rowBytes);
    return;
  }
  const int64_t ahead = rowsAhead(rowBytes);
  for (int64_t i = 0; i < rows; ++i, d += dStep, s += sStep) {
    for (size_t at = 0; at < rowBytes; at += kLineBytes) {
      __builtin_prefetch(s + ahead * sStep + at);
      streamLine(d + at, s + at);
    }
  }
}

// Copies two dimensions of single elements.
void copyElements(unsigned char* d, const unsigned char* s, Dimension outer, Dimension inner,
                  size_t bytes, bool streams) {
  const auto element = static_cast<int64_t>(bytes);
  if (outer.dst == element && inner.src == element) std::swap(outer, inner);
  if (inner.dst == element && outer.src == element) {
    const Plane plane = {d, outer.dst, nullptr, s, inner.src, outer.extent, inner.extent};
    return activeTable().transposeOf(bytes)(plane, nullptr, 0, streams);
  }
  switch (bytes) {
    case 1:
      return copyPlane<1>(d, outer.dst, inner.dst, s, outer.src, inner.src, outer.extent,
                          inner.extent);
    case 2:
      return copyPlane<2>(d, outer.dst, inner.dst, s, outer.src, inner.src, outer.extent,
                          inner.extent);
    case 4:
      return copyPlane<4>(d, outer.dst, inner.dst, s, outer.src, inner.src, outer.extent,
                          inner.extent);
    default:
      return copyPlane<8>(d, outer.dst, inner.dst, s, outer.src, inner.src, outer.extent,
                          inner.extent);
  }
}

// Limits of a copy within the second-level cache of common CPUs. In this range the C library, which
// may use string instructions, is at least as fast as a loop of vector registers.
constexpr size_t kLibraryCopyMin = size_t{24} << 10;
constexpr size_t kLibraryCopyMax = size_t{320} << 10;

}  // namespace

void copyRows(unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep, int64_t rows,
              size_t rowBytes) noexcept {
  switch (rowBytes) {
    case 1:
      return copyRowsOf<1>(d, dStep, s, sStep, rows);
    case 2:
      return copyRowsOf<2>(d, dStep, s, sStep, rows);
    case 4:
      return copyRowsOf<4>(d, dStep, s, sStep, rows);
    case 8:
      return copyRowsOf<8>(d, dStep, s, sStep, rows);
    case 16:
      return copyRowsOf<16>(d, dStep, s, sStep, rows);
    case 32:
      return copyRowsOf<32>(d, dStep, s, sStep, rows);
    case 64:
      return copyRowsOf<64>(d, dStep, s, sStep, rows);
    case 128:
      return copyRowsOf<128>(d, dStep, s, sStep, rows);
    default:
      break;
  }
  if (far(dStep, sStep) && rowBytes <= kLongestFarRow) {
    copyFarRows(
        d, dStep, s, sStep, rows, rowBytes,
        [=](unsigned char* to, const unsigned char* from) { copyBytes(to, from, rowBytes); });
  } else {
    for (int64_t i = 0; i < rows; ++i) copyBytes(d + i * dStep, s + i * sStep, rowBytes);
  }
}

void copyStrided(unsigned char* dst, const ByteStrides& dstStep, const unsigned char* src,
                 const ByteStrides& srcStep, const int64_t* extent, uint32_t ndim,
                 size_t elementBytes, Stores stores) noexcept {
  Dimension dims[kMaxDims];
  uint32_t count = 0;
  for (uint32_t d = 0; d < ndim; ++d) {
    if (extent[d] != 1) dims[count++] = {extent[d], dstStep.step[d], srcStep.step[d]};
  }
  // Inner dimensions that are contiguous on both sides form rows.
  const auto element = static_cast<int64_t>(elementBytes);
  int64_t rowBytes = element;
  while (count > 0 && dims[count - 1].dst == rowBytes && dims[count - 1].src == rowBytes) {
    rowBytes *= dims[--count].extent;
  }
  if (count == 0) {
    if (stores == Stores::kStreaming) {
      activeTable().stream(dst, src, static_cast<size_t>(rowBytes));
    } else {
      copyBytes(dst, src, static_cast<size_t>(rowBytes));
    }
    return;
  }
  bool lines = stores == Stores::kStreaming && rowBytes % kLineBytes == 0 &&
               reinterpret_cast<uintptr_t>(dst) % kLineBytes == 0;
  for (uint32_t d = 0; d < count; ++d) lines = lines && dims[d].dst % kLineBytes == 0;
  if (rowBytes == element && count > 1) {
    const bool streams = stores == Stores::kStreaming;
    // The dimension along which the source is contiguous moves next to the innermost.
    for (uint32_t d = 0; d + 2 < count; ++d) {
      if (dims[d].src == element || dims[d].dst == element) std::swap(dims[d], dims[count - 2]);
    }
    forEachAddress(dims, count - 2, dst, src, [&](unsigned char* d, const unsigned char* s) {
      copyElements(d, s, dims[count - 2], dims[count - 1], elementBytes, streams);
    });
    return;
  }
  const auto copy = lines ? streamRows : copyRows;
  forEachRun(dims, count, dst, src,
             [=](unsigned char* d, int64_t dStep, const unsigned char* s, int64_t sStep,
                 int64_t rows) { copy(d, dStep, s, sStep, rows, static_cast<size_t>(rowBytes)); });
}

void detail::copyLong(void* dst, const void* src, size_t bytes) noexcept {
  if (bytes >= kLibraryCopyMin && bytes <= kLibraryCopyMax && !isSlowToCopy(dst, src)) {
    std::memcpy(dst, src, bytes);
  } else {
    activeTable().copy(dst, src, bytes);
  }
}

thread_local bool detail::phaseStreams = false;

void detail::putLong(void* dst, const void* src, size_t bytes) noexcept {
  if (!phaseStreams) return copyLong(dst, src, bytes);
  activeTable().stream(static_cast<unsigned char*>(dst), static_cast<const unsigned char*>(src),
                       bytes);
  orderStreamed();
}

}  // namespace windlass
