// SPDX-License-Identifier: Apache-2.0
// Transposed copies: the rows of a plane are contiguous on one side, and the columns on the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace windlass {

// Element of N bytes in a register.
template <size_t N>
struct Lane;
template <>
struct Lane<1> {
  using Type = uint8_t;
};
template <>
struct Lane<2> {
  using Type = uint16_t;
};
template <>
struct Lane<4> {
  using Type = uint32_t;
};
template <>
struct Lane<8> {
  using Type = uint64_t;
};

// A register of 16 bytes with elements of N bytes, in GCC's vector extensions. interleaveLow
// alternates elements of the first halves of a and b; interleaveHigh uses the second halves.
template <size_t N>
using RegisterOf __attribute__((vector_size(16))) = typename Lane<N>::Type;

template <size_t N, class Register = RegisterOf<N>>
inline Register interleaveLow(Register a, Register b) noexcept {
  if constexpr (N == 1) {
    return __builtin_shuffle(
        a, b, Register{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
  }
  if constexpr (N == 2) return __builtin_shuffle(a, b, Register{0, 8, 1, 9, 2, 10, 3, 11});
  if constexpr (N == 4) return __builtin_shuffle(a, b, Register{0, 4, 1, 5});
  if constexpr (N == 8) return __builtin_shuffle(a, b, Register{0, 2});
}

template <size_t N, class Register = RegisterOf<N>>
inline Register interleaveHigh(Register a, Register b) noexcept {
  if constexpr (N == 1) {
    return __builtin_shuffle(
        a, b, Register{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
  }
  if constexpr (N == 2) return __builtin_shuffle(a, b, Register{4, 12, 5, 13, 6, 14, 7, 15});
  if constexpr (N == 4) return __builtin_shuffle(a, b, Register{2, 6, 3, 7});
  if constexpr (N == 8) return __builtin_shuffle(a, b, Register{1, 3});
}

template <class Register>
inline Register loadRegister(const unsigned char* from) noexcept {
  Register loaded;
  __builtin_memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

template <class Register>
inline void storeRegister(unsigned char* to, Register stored) noexcept {
  __builtin_memcpy(to, &stored, sizeof stored);
}

// Transposes one square of 16 / N elements a side. Each round interleaves the halves of the list of
// registers. After log2(side) rounds the list is transposed.
template <size_t N>
inline void transposeSquare(unsigned char* d, int64_t dRow, const unsigned char* s,
                            int64_t sRow) noexcept {
  constexpr int kSide = 16 / N;
  using Register = RegisterOf<N>;
  Register row[kSide];
  Register next[kSide];
  for (int i = 0; i < kSide; ++i) row[i] = loadRegister<Register>(s + i * sRow);
  for (int round = 1; round < kSide; round *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      next[i * 2] = interleaveLow<N>(row[i], row[i + kSide / 2]);
      next[i * 2 + 1] = interleaveHigh<N>(row[i], row[i + kSide / 2]);
    }
    for (int i = 0; i < kSide; ++i) row[i] = next[i];
  }
  for (int i = 0; i < kSide; ++i) storeRegister(d + i * dRow, row[i]);
}

// Transposes a square of whole cache lines through a block in the first-level cache, so that each
// line is read once and written once.
template <size_t N>
inline void transposeLines(unsigned char* d, int64_t dRow, const unsigned char* s,
                           int64_t sRow) noexcept {
  constexpr int64_t kBytes = N;
  constexpr int64_t kSide = 16 / kBytes;
  constexpr int64_t kLine = 64;
  constexpr int64_t kLines = kLine / kBytes;
  alignas(64) unsigned char block[kLines * kLine];
  for (int64_t c = 0; c < kLines; c += kSide) {
    for (int64_t r = 0; r < kLines; r += kSide) {
      transposeSquare<N>(block + r * kLine + c * kBytes, kLine, s + c * sRow + r * kBytes, sRow);
    }
  }
  for (int64_t r = 0; r < kLines; ++r) __builtin_memcpy(d + r * dRow, block + r * kLine, kLine);
}

// d[row][column] = s[column][row] for elements of N bytes. Steps are between rows, in bytes.
template <size_t N>
inline void transposePlane(unsigned char* d, int64_t dRow, const unsigned char* s, int64_t sRow,
                           int64_t rows, int64_t columns) noexcept {
  constexpr auto kBytes = static_cast<int64_t>(N);
  constexpr int64_t kSide = 16 / kBytes;
  const int64_t wholeRows = rows - rows % kSide;
  const int64_t wholeColumns = columns - columns % kSide;
  constexpr int64_t kLines = 64 / kBytes;
  constexpr int64_t kAhead = kLines < 32 ? 2 * kLines : kLines;
  const int64_t lineRows = rows - rows % kLines;
  const int64_t lineColumns = columns - columns % kLines;
  for (int64_t r = 0; r < lineRows; r += kLines) {
    for (int64_t c = 0; c < lineColumns; c += kLines) {
      for (int64_t ahead = kAhead; ahead < kAhead + kLines; ++ahead) {
        __builtin_prefetch(s + (c + ahead) * sRow + r * kBytes);
      }
      transposeLines<N>(d + r * dRow + c * kBytes, dRow, s + c * sRow + r * kBytes, sRow);
    }
  }
  for (int64_t c = 0; c < wholeColumns; c += kSide) {
    for (int64_t r = c < lineColumns ? lineRows : 0; r < wholeRows; r += kSide) {
      transposeSquare<N>(d + r * dRow + c * kBytes, dRow, s + c * sRow + r * kBytes, sRow);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < wholeRows ? wholeColumns : 0; c < columns; ++c) {
      unsigned char element[N];
      __builtin_memcpy(element, s + c * sRow + r * kBytes, N);
      __builtin_memcpy(d + r * dRow + c * kBytes, element, N);
    }
  }
}

}  // namespace windlass
