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

// Stores a line at `to`, which begins a line, past the caches.
WINDLASS_INLINE void streamBlock(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  streamLine(to, from);
#endif
}

// Casts one line at a time, and stores it past the caches. The ends of the run, and a run whose
// elements cross lines, are cast as others are.
template <CastLoop cast, size_t SrcBytes, size_t DstBytes>
WINDLASS_LOOP void castStreaming(void* dst, const void* src, size_t count) {
  constexpr size_t kLine = 64;
  constexpr size_t kBlock = kLine / DstBytes;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  const size_t ahead = -reinterpret_cast<uintptr_t>(d) % kLine;
  size_t at = ahead % DstBytes == 0 && ahead / DstBytes < count ? ahead / DstBytes : count;
  castRun<cast>(d, s, at);
  alignas(kLine) unsigned char line[kLine];
  for (; count - at >= kBlock; at += kBlock) {
    cast(line, s + at * SrcBytes, kBlock);
    streamBlock(d + at * DstBytes, line);
  }
  castRun<cast>(d + at * DstBytes, s + at * SrcBytes, count - at);
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

// Sets the loops of a cast of one run.
template <CastLoop cast, DType from, DType to>
constexpr void setRun(VectorTable& table) {
  table.cast[floatIndex(from)][floatIndex(to)] = castRun<cast>;
  table.castStreaming[floatIndex(from)][floatIndex(to)] =
      castStreaming<cast, sizeOf(from), sizeOf(to)>;
}

// Sets all loops of a cast.
template <CastLoop cast, DType from, DType to>
constexpr void setCast(VectorTable& table) {
  setRun<cast, from, to>(table);
  table.castRows[floatIndex(from)][floatIndex(to)] = castRows<cast, sizeOf(from), sizeOf(to)>;
}
