// SPDX-License-Identifier: Apache-2.0
// Signals, flags and barriers on sim.
//
// Release: data, pipe_barrier(PIPE_ALL), dsb(DSB_DDR), TNOTIFY. Acquire: TTEST or TWAIT true,
// pipe_barrier(PIPE_ALL), data. Here TNOTIFY is a release and a look is an acquire on the signal
// itself; a copy that used non-temporal stores ends with its own SFENCE, so the order holds on
// whichever thread notifies.
#pragma once

#include <sched.h>

#include <cstdint>

#include "native/base/cpu.h"

namespace windlass {

enum pipe_t { PIPE_S = 0, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };
enum event_t {
  EVENT_ID0 = 0,
  EVENT_ID1,
  EVENT_ID2,
  EVENT_ID3,
  EVENT_ID4,
  EVENT_ID5,
  EVENT_ID6,
  EVENT_ID7
};
enum mem_dsb_t { DSB_DDR = 0 };

// Pipes of one core run in program order here: flags and barriers keep the compiler in order.
inline void set_flag(pipe_t, pipe_t, event_t) noexcept {
  __asm__ volatile("" ::: "memory");
}
inline void wait_flag(pipe_t, pipe_t, event_t) noexcept {
  __asm__ volatile("" ::: "memory");
}
inline void pipe_barrier(pipe_t) noexcept {
  __asm__ volatile("" ::: "memory");
}
inline void dsb(mem_dsb_t) noexcept {
  __asm__ volatile("" ::: "memory");
}

// Between two looks at a signal. `sharesCore`: the thread that will write it may need this core.
inline void relax(bool sharesCore) noexcept {
  if (sharesCore) {
    sched_yield();
  } else {
    cpuPause();
  }
}

namespace comm {

// Numbers are ABI: append only.
enum class NotifyOp { AtomicAdd = 0, Set = 1 };
enum class WaitCmp { EQ = 0, NE, GT, GE, LT, LE };

// One 32-bit word, with one writer to its 64-byte line.
class Signal {
 public:
  explicit Signal(int32_t* word) noexcept : word_(word) {}
  explicit Signal(uint32_t* word) noexcept : word_(reinterpret_cast<int32_t*>(word)) {}
  int32_t* word() const noexcept { return word_; }

 private:
  int32_t* word_;
};

// R x C words; rowStride counts words.
template <int R, int C>
class Signal2D {
 public:
  explicit Signal2D(int32_t* words, int64_t rowStride = C) noexcept
      : words_(words), rowStride_(rowStride) {}
  Signal at(int row, int column) const noexcept {
    return Signal(words_ + row * rowStride_ + column);
  }

 private:
  int32_t* words_;
  int64_t rowStride_;
};

inline bool compare(int32_t seen, int32_t want, WaitCmp cmp) noexcept {
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

}  // namespace comm

inline void TNOTIFY(const comm::Signal& signal, int32_t value, comm::NotifyOp op) noexcept {
  if (op == comm::NotifyOp::Set) {
    __atomic_store_n(signal.word(), value, __ATOMIC_RELEASE);
  } else {
    __atomic_fetch_add(signal.word(), value, __ATOMIC_ACQ_REL);
  }
}

// One look.
inline bool TTEST(const comm::Signal& signal, int32_t value, comm::WaitCmp cmp) noexcept {
  return comm::compare(__atomic_load_n(signal.word(), __ATOMIC_ACQUIRE), value, cmp);
}

// One look at each word; true when all satisfy.
template <int R, int C>
inline bool TTEST(const comm::Signal2D<R, C>& signals, int32_t value, comm::WaitCmp cmp) noexcept {
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      if (!TTEST(signals.at(r, c), value, cmp)) return false;
    }
  }
  return true;
}

// Looks until the signal satisfies (true) or stop() is true (false). Never resets the signal.
template <typename SignalT, typename Stop>
inline bool TWAIT(const SignalT& signal, int32_t value, comm::WaitCmp cmp, Stop&& stop) {
  while (!TTEST(signal, value, cmp)) {
    if (stop()) return TTEST(signal, value, cmp);
    cpuPause();
  }
  return true;
}

}  // namespace windlass
