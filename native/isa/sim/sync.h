// SPDX-License-Identifier: Apache-2.0
// Signals, flags and barriers on sim.
//
// Release: data, pipe_barrier(PIPE_ALL), dsb(DSB_DDR), TNOTIFY. Acquire: TTEST or TWAIT true,
// pipe_barrier(PIPE_ALL), data. Here TNOTIFY is a release and a look is an acquire on the signal
// itself. A copy with non-temporal stores ends with its own SFENCE, so the order holds on any
// thread that notifies.
#pragma once

#include <cstdint>

#include "native/base/cpu.h"
#include "native/isa/enums.h"
#include "native/isa/signals.h"

namespace pto {
inline namespace sim {

// The pipes of a core run in program order here. Flags and barriers only stop the compiler from
// reordering.
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

}  // namespace sim

namespace comm {
inline namespace sim {

inline void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) noexcept {
  notify(signal.data(), value, op);
}

// Compares the signal once.
inline bool TTEST(Signal& signal, int32_t value, WaitCmp cmp) noexcept {
  return satisfies(signal.data(), value, cmp);
}

// Polls until the signal satisfies the comparison (true) or stop() returns true. Never resets the
// signal.
template <typename SignalT, typename Stop>
inline bool TWAIT(SignalT& signal, int32_t value, WaitCmp cmp, Stop&& stop) {
  while (!TTEST(signal, value, cmp)) {
    if (stop()) return TTEST(signal, value, cmp);
    windlass::cpuPause();
  }
  return true;
}

}  // namespace sim
}  // namespace comm
}  // namespace pto

using pto::dsb;
using pto::pipe_barrier;
using pto::set_flag;
using pto::wait_flag;
