// SPDX-License-Identifier: Apache-2.0
// Signals under the names of the tile ISA, and polls of them, for targets that run on the CPU.
#pragma once

#include <sched.h>

#include <cstdint>

#include "native/base/cpu.h"
#include "native/isa/enums.h"

namespace pto {
namespace comm {

// One 32-bit word. Each 64-byte line has one writer.
class Signal {
 public:
  explicit Signal(int32_t* word) noexcept : word_(word) {}
  int32_t* data() noexcept { return word_; }

 private:
  int32_t* word_;
};

// R x C signals. rowStride counts words.
template <int R, int C>
class Signal2D {
 public:
  explicit Signal2D(int32_t* words, int rowStride = C) noexcept
      : words_(words), rowStride_(rowStride) {}
  Signal at(int row, int column) noexcept {
    return Signal(words_ + static_cast<int64_t>(row) * rowStride_ + column);
  }

 private:
  int32_t* words_;
  int rowStride_;
};

// Reads the signal once. Returns true if it satisfies the comparison.
inline bool satisfies(const int32_t* signal, int32_t want, WaitCmp cmp) noexcept {
  const int32_t seen = __atomic_load_n(signal, __ATOMIC_ACQUIRE);
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
    case WaitCmp::LE:
      return seen <= want;
  }
  return false;
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

namespace windlass {

// Called between two looks at a signal. `sharesCore` is true if the thread that writes the signal
// may need this CPU core.
inline void relax(bool sharesCore) noexcept {
  if (sharesCore) {
    sched_yield();
  } else {
    cpuPause();
  }
}

}  // namespace windlass
