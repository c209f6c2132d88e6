// SPDX-License-Identifier: Apache-2.0
// Part of a vector path: a cast of one run of elements, and a cast of separate rows. The casts are
// inline functions with the signature of CastLoop.

#define WINDLASS_INLINE static inline __attribute__((always_inline))
// Keeps loops out of line, so that loops with a staging buffer call them.
#define WINDLASS_LOOP static __attribute__((noinline))

template <CastLoop cast>
WINDLASS_LOOP void castRun(void* dst, const void* src, size_t count) {
  cast(dst, src, count);
}

// Casts Block elements at a time, in registers without a loop.
template <CastLoop cast, size_t SrcBytes, size_t DstBytes, size_t Block>
WINDLASS_INLINE void castBlocks(void* dst, int64_t dstStep, const void* src, int64_t srcStep,
                                int64_t rows, size_t count) {
  constexpr size_t kLine = 64;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const int64_t ahead = rowsAhead(count * (SrcBytes > DstBytes ? SrcBytes : DstBytes));
  for (int64_t row = 0; row < rows; ++row, d += dstStep, s += srcStep) {
    for (size_t at = 0; at < count * SrcBytes; at += kLine) {
      __builtin_prefetch(s + ahead * srcStep + at);
    }
    for (size_t at = 0; at < count * DstBytes; at += kLine) {
      __builtin_prefetch(d + ahead * dstStep + at, 1);
    }
    for (size_t at = 0; at < count; at += Block) cast(d + at * DstBytes, s + at * SrcBytes, Block);
  }
}

// Rows that fill one cache line on either side have their own code.
template <CastLoop cast, size_t SrcBytes, size_t DstBytes>
WINDLASS_LOOP void castRows(void* dst, int64_t dstStep, const void* src, int64_t srcStep,
                            int64_t rows, size_t count) {
  switch (count) {
    case 16:
      return castBlocks<cast, SrcBytes, DstBytes, 16>(dst, dstStep, src, srcStep, rows, 16);
    case 32:
      return castBlocks<cast, SrcBytes, DstBytes, 32>(dst, dstStep, src, srcStep, rows, 32);
    case 64:
      return castBlocks<cast, SrcBytes, DstBytes, 32>(dst, dstStep, src, srcStep, rows, 64);
    default:
      return castBlocks<cast, SrcBytes, DstBytes, kCastBlock>(dst, dstStep, src, srcStep, rows,
                                                              count);
  }
}

// Sets both loops of a cast.
template <CastLoop cast, DType from, DType to>
constexpr void setCast(VectorTable& table) {
  constexpr int kFrom = floatIndex(from);
  constexpr int kTo = floatIndex(to);
  table.cast[kFrom][kTo] = castRun<cast>;
  table.castRows[kFrom][kTo] = castRows<cast, sizeOf(from), sizeOf(to)>;
}
