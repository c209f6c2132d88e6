// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: transposed planes of elements of N bytes. A tile is a square whose rows
// fill a register of W bytes.

// A register of W bytes. Its units are elements of N bytes, of at most 8 bytes each.
template <size_t N, size_t W>
struct Units {
  using Unit = std::conditional_t<
      N == 1, uint8_t,
      std::conditional_t<N == 2, uint16_t, std::conditional_t<N == 4, uint32_t, uint64_t>>>;
  typedef Unit Register __attribute__((vector_size(W)));
  using Indices = std::make_index_sequence<W / sizeof(Unit)>;
};

// Alternates elements of N bytes of a and b within each group of `Group` bytes, from the first or
// the second half of the group on.
template <size_t N, size_t W, size_t Group, bool secondHalf, class Register, size_t... I>
WINDLASS_INLINE Register interleave(Register a, Register b, std::index_sequence<I...>) {
  using Unit = typename Units<N, W>::Unit;
  constexpr size_t kElement = N / sizeof(Unit);
  constexpr size_t kGroup = Group / sizeof(Unit);
  return __builtin_shuffle(
      a, b,
      Register{static_cast<Unit>(I / kGroup * kGroup + (secondHalf ? kGroup / 2 : 0) +
                                 I % kGroup / kElement / 2 * kElement + I % kElement +
                                 (I / kElement % 2 == 1 ? W / sizeof(Unit) : 0))...});
}

// Transposes each group of `Group` bytes of a list of Group / N registers. Each round interleaves
// the halves of the list.
template <size_t N, size_t W, size_t Group, class Register>
WINDLASS_INLINE void transposeGroups(Register* row) {
  constexpr size_t kCount = Group / N;
  using Indices = typename Units<N, W>::Indices;
  Register next[kCount];
#pragma GCC unroll 4
  for (size_t round = 1; round < kCount; round *= 2) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount / 2; ++i) {
      const Register a = row[i];
      const Register b = row[i + kCount / 2];
      next[i * 2] = interleave<N, W, Group, false>(a, b, Indices{});
      next[i * 2 + 1] = interleave<N, W, Group, true>(a, b, Indices{});
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < kCount; ++i) row[i] = next[i];
  }
}

// Transposes a tile: first the squares of 16 bytes within its rows, then the squares themselves.
template <size_t N, size_t W, bool streaming = false>
WINDLASS_INLINE void transposeTile(unsigned char* d, int64_t dStep, const unsigned char* s,
                                   int64_t sStep) {
  constexpr int64_t kSide = 16 / N;
  constexpr int64_t kSquares = W / 16;
  using Row = typename Units<N, W>::Register;
  using Square = typename Units<16, W>::Register;
  Square square[kSide][kSquares];
#pragma GCC unroll 1
  for (int64_t k = 0; k < kSquares; ++k) {
    Row row[kSide];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kSide; ++i) {
      __builtin_memcpy(&row[i], s + (k * kSide + i) * sStep, W);
    }
    transposeGroups<N, W, 16>(row);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kSide; ++i) square[i][k] = reinterpret_cast<Square>(row[i]);
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < kSide; ++i) {
    transposeGroups<16, W, W>(square[i]);
#pragma GCC unroll 4
    for (int64_t k = 0; k < kSquares; ++k) {
      unsigned char* to = d + (k * kSide + i) * dStep;
      if constexpr (streaming) {
        streamBlock(to, &square[i][k]);
      } else {
        __builtin_memcpy(to, &square[i][k], W);
      }
    }
  }
}

// Transposes a part of a plane by tiles of W bytes a side, its ends by smaller ones, and what is
// left by single elements.
template <size_t N, size_t W>
WINDLASS_LOOP void transposePart(unsigned char* d, int64_t dStep, const unsigned char* s,
                                 int64_t sStep, int64_t rows, int64_t columns) {
  constexpr int64_t kBytes = N;
  if constexpr (W < 16) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        __builtin_memcpy(d + row * dStep + column * kBytes, s + column * sStep + row * kBytes, N);
      }
    }
  } else {
    constexpr int64_t kTile = W / kBytes;
    const int64_t right = columns - columns % kTile;
    const int64_t below = rows - rows % kTile;
    for (int64_t row = 0; row < below; row += kTile) {
      for (int64_t column = 0; column < right; column += kTile) {
        transposeTile<N, W>(d + row * dStep + column * kBytes, dStep,
                            s + column * sStep + row * kBytes, sStep);
      }
    }
    if (right < columns) {
      transposePart<N, W / 2>(d + right * kBytes, dStep, s + right * sStep, sStep, below,
                              columns - right);
    }
    if (below < rows) {
      transposePart<N, W / 2>(d + below * dStep, dStep, s + below * kBytes, sStep, rows - below,
                              columns);
    }
  }
}

// Writes runs of about kRunBytes in each row before it goes to the next. Rows that are cast, or
// that are far apart and so share few cache sets, go through a buffer of one run each.
template <size_t N>
WINDLASS_LOOP void transposePlane(const Plane& plane, CastLoop cast, size_t castBytes,
                                  bool streams) {
  constexpr int64_t kBytes = N;
  constexpr int64_t kLine = 64;
  constexpr int64_t kRows = kLine / kBytes;
  constexpr int64_t kAhead = 4 * kLine;
  constexpr int64_t kMostColumns = 128;  // small stacks hold a buffer of no more
  const int64_t dStep = plane.dstStep;
  const int64_t sStep = plane.srcStep;
  const auto rowAt = [&](int64_t row) { return plane.dstRows ? plane.dstRows[row] : row * dStep; };
  bool lines = streams && reinterpret_cast<uintptr_t>(plane.dst) % kLine == 0;
  for (int64_t row = 0; lines && row < plane.rows; ++row) lines = rowAt(row) % kLine == 0;
  const bool isUniform = plane.dstRows == nullptr && cast == nullptr;
  const bool isDirect = isUniform && lines && WINDLASS_PATH_WIDTH == kLine;
  const bool isFar = dStep >= kConflictStep || dStep <= -kConflictStep;
  const bool buffers = !isUniform || (isFar && !isDirect);
  const auto outBytes = cast != nullptr ? static_cast<int64_t>(castBytes) : kBytes;
  int64_t most = kRunBytes / outBytes < kRows ? kRows : kRunBytes / outBytes;
  if (most > kMostColumns) most = kMostColumns;
  alignas(64) unsigned char run[kRows * kMostColumns * kBytes];
  for (int64_t first = 0; first < plane.columns; first += most) {
    const int64_t left = plane.columns - first;
    const int64_t count = left < most ? left : most;
    for (int64_t row = 0; row < plane.rows; row += kRows) {
      const int64_t below = plane.rows - row;
      const int64_t height = below < kRows ? below : kRows;
      const int64_t step = buffers ? most * kBytes : dStep;
      for (int64_t c = 0; c < count; c += kRows) {
        const unsigned char* const from = plane.src + (first + c) * sStep + row * kBytes;
        unsigned char* const tile =
            (buffers ? run : plane.dst + row * dStep + first * kBytes) + c * kBytes;
        const int64_t width = count - c < kRows ? count - c : kRows;
        for (int64_t i = 0; i < width; ++i) __builtin_prefetch(from + i * sStep + kAhead);
        if constexpr (WINDLASS_PATH_WIDTH == kLine) {
          if (isDirect && height == kRows && width == kRows) {
            transposeTile<N, WINDLASS_PATH_WIDTH, true>(tile, step, from, sStep);
            continue;
          }
        }
        transposePart<N, WINDLASS_PATH_WIDTH>(tile, step, from, sStep, height, width);
      }
      for (int64_t r = 0; buffers && r < height; ++r) {
        unsigned char* const to = plane.dst + rowAt(row + r) + first * outBytes;
        if (cast != nullptr) {
          cast(to, run + r * step, static_cast<size_t>(count));
          continue;
        }
        int64_t at = 0;
        for (; at + kLine <= count * kBytes; at += kLine) {
          unsigned char* const line = to + at;
          if (lines) {
            streamBlock(line, run + r * step + at);
          } else {
            __builtin_memcpy(line, run + r * step + at, kLine);
          }
        }
        for (; at < count * kBytes; at += kBytes) {
          __builtin_memcpy(to + at, run + r * step + at, N);
        }
      }
    }
  }
}
