// SPDX-License-Identifier: Apache-2.0
// Signals under the names of the tile ISA, for the CPU and for cores of GPUs.
#pragma once

#include <cstdint>

#include "native/isa/enums.h"
#include "windlass/kernel.h"

namespace pto {
namespace comm {

// One 32-bit word. Each 64-byte line has one writer.
class Signal {
 public:
  WL_CORE_INLINE explicit Signal(int32_t* word) noexcept : word_(word) {}
  WL_CORE_INLINE int32_t* data() noexcept { return word_; }

 private:
  int32_t* word_;
};

// R x C signals. rowStride counts words.
template <int R, int C>
class Signal2D {
 public:
  WL_CORE_INLINE explicit Signal2D(int32_t* words, int rowStride = C) noexcept
      : words_(words), rowStride_(rowStride) {}
  WL_CORE_INLINE Signal at(int row, int column) noexcept {
    return Signal(words_ + static_cast<int64_t>(row) * rowStride_ + column);
  }
  // Returns true if test(signal) is true for each signal.
  template <typename Test>
  WL_CORE_INLINE bool all(const Test& test) {
    for (int row = 0; row < R; ++row) {
      for (int column = 0; column < C; ++column) {
        Signal signal = at(row, column);
        if (!test(signal)) return false;
      }
    }
    return true;
  }

 private:
  int32_t* words_;
  int rowStride_;
};

// Compares each word once. Returns true if all satisfy the comparison.
template <int R, int C>
WL_CORE_INLINE bool TTEST(Signal2D<R, C>& signals, int32_t value, WaitCmp cmp) {
  return signals.all([&](auto& signal) { return TTEST(signal, value, cmp); });
}

WL_CORE_INLINE bool compare(int32_t seen, int32_t want, WaitCmp cmp) noexcept {
  switch (cmp) {
    case WaitCmp::EQ:
      return seen == want;
    case WaitCmp::NE:
      return seen != want;
    case WaitCmp::GT:
      return seen > want;
    case WaitCmp::GE:
      return seen >= want;
    case WaitCmp::LT:
      return seen < want;
    default:
      return seen <= want;
  }
}

// ---- on the CPU

// Reads the signal once. Returns true if it satisfies the comparison.
inline bool satisfies(const int32_t* signal, int32_t want, WaitCmp cmp) noexcept {
  return compare(__atomic_load_n(signal, __ATOMIC_ACQUIRE), want, cmp);
}

inline void notify(int32_t* signal, int32_t value, NotifyOp op) noexcept {
  if (op == NotifyOp::Set) {
    __atomic_store_n(signal, value, __ATOMIC_RELEASE);
  } else {
    __atomic_fetch_add(signal, value, __ATOMIC_ACQ_REL);
  }
}

}  // namespace comm
}  // namespace pto
