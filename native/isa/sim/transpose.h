// SPDX-License-Identifier: Apache-2.0
// Transposed copies: the rows of a plane are contiguous on one side, and the columns on the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace windlass {

// An unsigned integer of N bytes.
template <size_t N>
using Lane = std::conditional_t<
    N == 1, uint8_t,
    std::conditional_t<N == 2, uint16_t, std::conditional_t<N == 4, uint32_t, uint64_t>>>;

// A register of 16 bytes with elements of N bytes, in GCC's vector extensions.
template <size_t N>
using RegisterOf __attribute__((vector_size(16))) = Lane<N>;

// Alternates elements of a and b, from element `kFirst` of each.
template <size_t N, int kFirst, class Register = RegisterOf<N>>
inline Register interleave(Register a, Register b) noexcept {
  if constexpr (N == 1) {
    constexpr Register kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    return __builtin_shuffle(a, b, kLow + kFirst);
  }
  if constexpr (N == 2) {
    return __builtin_shuffle(a, b, Register{0, 8, 1, 9, 2, 10, 3, 11} + kFirst);
  }
  if constexpr (N == 4) return __builtin_shuffle(a, b, Register{0, 4, 1, 5} + kFirst);
  if constexpr (N == 8) return __builtin_shuffle(a, b, Register{0, 2} + kFirst);
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
      next[i * 2] = interleave<N, 0>(row[i], row[i + kSide / 2]);
      next[i * 2 + 1] = interleave<N, kSide / 2>(row[i], row[i + kSide / 2]);
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
