// SPDX-License-Identifier: Apache-2.0
// The slow wait: spin where every rank has a core, then yield, then sleep on the rank's doorbell.
// Every look that fails is followed, sooner or later, by a look at what ends all waits.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "native/comm/comm.h"
#include "native/isa/isa.h"

namespace windlass {
namespace {

// A wake across cores costs 27 us: spin about twice that long before giving up the core.
constexpr int64_t kSpinNs = 50'000;
constexpr int kLooksBetweenClocks = 128;
constexpr int kYields = 64;
// A yield that takes longer met a thread that computes for its whole time slice: sleep at once, and
// try yielding again later. Ranks that wake one another take turns of some hundred us at most: less
// would take those for such a thread, and keep every rank asleep for good.
constexpr int64_t kContestedYieldNs = 1'000'000;
constexpr int64_t kContestedForNs = 10'000'000;
constexpr int64_t kLongestSleepNs = 8'000'000;
// The kernel parts two ranks that share a core while another idles at a tick, up to 4 ms later;
// they part by themselves at once. Where a core was contested of late, the other one may not idle:
// a rank that moves there waits for a time slice.
constexpr int64_t kLeaveCoreEveryNs = 4'000'000;
constexpr int64_t kStayAfterContestNs = 100'000'000;

// Moves this thread to another core that it may use, if there is one.
void leaveCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<size_t>(sched_getcpu()), &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) {
    sched_setaffinity(0, sizeof allowed, &allowed);
  }
}

}  // namespace

Code Comm::waitSlow(Look look, uint32_t awaited, Deadline& deadline) {
  recorder_.stampEntry();
  announce(awaited == kEveryRank ? -2 : static_cast<int32_t>(awaited));
  int64_t now = clockNs();
  const int64_t start = now;
  Code code = interruption(deadline, now);
  bool ready = false;
  while (code == WL_OK && !ready && !group_->oversubscribed() && now - start < kSpinNs) {
    if (sharesCore(awaited)) {
      if (now >= leaveCoreAfterNs_) {
        leaveCoreAfterNs_ = now + kLeaveCoreEveryNs;
        leaveCore();
      }
      ready = yieldOnce(look, &now);
      if (!ready && now < contestedUntilNs_) break;
    }
    for (int i = 0; i < kLooksBetweenClocks && !ready; ++i) {
      ready = look.ready(look.context);
      if (!ready) cpuPause();
    }
    now = clockNs();
    if (!ready) code = interruption(deadline, now);
  }
  while (code == WL_OK && !ready) {
    ready = yieldAwhile(look, &now) || sleepOnce(look, deadline, now, &code);
    now = clockNs();
    if (!ready && code == WL_OK) code = interruption(deadline, now);
  }
  own_.state.awaited.store(-1, std::memory_order_relaxed);
  waitedNs_ += clockNs() - start;
  return code;
}

bool Comm::sharesCore(uint32_t awaited) const {
  const int32_t core = sched_getcpu();
  if (awaited != kEveryRank) {
    return group_->lines(awaited).state.core.load(std::memory_order_relaxed) == core;
  }
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (peer != rank_ && group_->lines(peer).state.core.load(std::memory_order_relaxed) == core) {
      return true;
    }
  }
  return false;
}

bool Comm::yieldAwhile(Look look, int64_t* now) {
  for (int i = 0; i < kYields && *now >= contestedUntilNs_; ++i) {
    if (yieldOnce(look, now)) return true;
  }
  return false;
}

bool Comm::yieldOnce(Look look, int64_t* now) {
  if (*now < contestedUntilNs_) return false;
  sched_yield();
  own_.state.core.store(sched_getcpu(), std::memory_order_relaxed);
  if (look.ready(look.context)) return true;
  const int64_t after = clockNs();
  if (after - *now > kContestedYieldNs) {
    contestedUntilNs_ = after + kContestedForNs;
    leaveCoreAfterNs_ = after + kStayAfterContestNs;
    own_.state.contested.fetch_add(1, std::memory_order_relaxed);
  }
  *now = after;
  return false;
}

bool Comm::sleepOnce(Look look, Deadline& deadline, int64_t now, Code* code) {
  Doorbell& bell = own_.bell;
  SharedLines& shared = group_->shared();
  const uint32_t seen = bell.ring.load(std::memory_order_seq_cst);
  bell.sleeping.exchange(1, std::memory_order_seq_cst);
  shared.sleepers.fetch_add(1, std::memory_order_seq_cst);
  // Whoever stores after these looks sees `sleeping` after its own read-modify-write, and rings.
  const bool ready = look.ready(look.context);
  if (!ready) *code = interruption(deadline, now);
  if (!ready && *code == WL_OK) {
    const int64_t limitNs = std::min(kLongestSleepNs, deadline.left(now));
    timespec limit;
    limit.tv_sec = limitNs / 1'000'000'000;
    limit.tv_nsec = limitNs % 1'000'000'000;
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell.ring), FUTEX_WAIT_PRIVATE, seen, &limit,
            nullptr, 0);
  }
  shared.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  bell.sleeping.store(0, std::memory_order_seq_cst);
  return ready || look.ready(look.context);
}

}  // namespace windlass
