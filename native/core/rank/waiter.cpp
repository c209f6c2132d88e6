// SPDX-License-Identifier: Apache-2.0
// The slow wait. If every rank has a core, it spins. Then it yields, then sleeps on the rank's
// doorbell. After failed checks, it regularly checks the conditions that end all waits.
#include <sched.h>

#include <algorithm>

#include "native/core/adjustment.h"
#include "native/core/rank/waits.h"

namespace windlass {
namespace {

// A wake across cores costs 27 us. Spins about twice that long before it gives up the core.
constexpr int64_t kSpinNs = 50'000;
constexpr int kYields = 64;
// Number of checks before a yield if all other ranks on this core also wait for a rank on another
// core. The yield would only run these.
constexpr int kLooksElsewhere = 256;
// Maximum number of ranks for which a rank checks on which cores its peers are. With more ranks,
// the check costs more than the thread switch that it may save. Also, a long yield may then have
// run only ranks.
constexpr uint32_t kFewRanks = 64;
// A longer yield shows that a thread on this core computes for its whole time slice. The rank then
// sleeps at once, and tries to yield again later. Ranks that wake one another take turns of some
// hundred us at most. With a lower limit, ranks would mistake one another for such a thread, and
// every rank would sleep forever. A rank that moves items also keeps the core for its whole slice,
// but does not count as such a thread.
constexpr int64_t kContestedYieldNs = 1'000'000;
constexpr int64_t kContestedForNs = 10'000'000;
// kLeaveCoreEveryNs: minimum time between two moves of a rank to another core. If ranks crowd a
// core while another core has fewer, the kernel moves one of them at a tick, up to 4 ms later. It
// may also never do so, because each rank runs only briefly. Therefore ranks move themselves, at
// once.
//
// kStayAfterContestNs: time after a contest for a core in which no rank moves. The other core may
// not be idle then, and the rank would wait for a time slice.
constexpr int64_t kLeaveCoreEveryNs = 4'000'000;
constexpr int64_t kStayAfterContestNs = 20'000'000;
// Time in which all ranks have short slices. A contest starts it unless it runs already.
constexpr int64_t kShortSlicesForNs = 100'000'000;
// Time between two comparisons of all peers' calls in a wait, for each rank of the group. Therefore
// many ranks together spend little time on them.
constexpr int64_t kCompareRankNs = 1'000'000;

}  // namespace

bool Waiter::Look::operator()() const {
  if (driven != nullptr && !ready(context)) driven->progress();
  return ready(context);
}

void Waiter::ring() {
  own_.state.awaited.fetch_add(0, std::memory_order_seq_cst);
  group_.wakeSleepers();
}

void Waiter::announce(int32_t awaited) {
  own_.state.awaited.exchange(awaited, std::memory_order_seq_cst);
  group_.wakeSleepers();
}

Code Waiter::waitSlow(const Look& look, Deadline& deadline) {
  const uint32_t awaited = look.awaited;
  isSlow_ = true;
  group_.recorder(rank_).stampEntry();
  int64_t now = clockNs();
  const int64_t start = now;
  returnShortSlices(now);
  announce(awaited == kEveryRank ? -2 : static_cast<int32_t>(awaited));
  int64_t compared = now;
  Code code = waits_.ended(deadline, now);
  bool ready = false;
  while (code == WL_OK && !ready && !group_.oversubscribed() && now - start < kSpinNs) {
    if (sharesCore(awaited, look.inside)) {
      ready = yieldOnce(look, &now);
      if (mayLeaveCore(now) && hasNearAwaited(awaited, look.inside)) leaveCore(look.inside, now);
      if (!ready && now < contestedUntilNs_) break;
    }
    for (int i = 0; i < kLooksBetweenClocks && !ready; ++i) {
      ready = look();
      if (!ready) cpuPause();
    }
    now = clockNs();
    if (!ready) code = waits_.ended(deadline, now);
  }
  while (code == WL_OK && !ready) {
    ready = yieldAwhile(look, &now) || sleepOnce(look, deadline, now, &code);
    now = clockNs();
    if (!ready && code == WL_OK) code = waits_.ended(deadline, now);
    if (!ready && code == WL_OK && now - compared >= kCompareRankNs * group_.ranks()) {
      compared = now;
      code = waits_.compared();
    }
  }
  // A peer that has already completed the awaited step may have caused the end of the wait.
  if (code != WL_OK && look()) code = WL_OK;
  own_.state.awaited.store(-1, std::memory_order_relaxed);
  waitedNs_ += clockNs() - start;
  isSlow_ = false;
  return code;
}

bool Waiter::sharesCore(uint32_t awaited, const Inside& inside) const {
  const int32_t core = sched_getcpu();
  if (awaited != kEveryRank) {
    return coreOf(awaited, inside) == core;
  }
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (peer != rank_ && coreOf(peer, inside) == core) return true;
  }
  return false;
}

bool Waiter::isNear(uint32_t peer, int32_t core, const Inside& inside) const {
  if (peer == rank_ || coreOf(peer, inside) != core) return false;
  return inside.oneSided ? group_.lines(peer).state.busy.load(std::memory_order_relaxed) != 0
                         : group_.entered(peer, inside.sequence);
}

bool Waiter::hasNearAwaited(uint32_t awaited, const Inside& inside) const {
  const int32_t core = sched_getcpu();
  if (awaited != kEveryRank) return isNear(awaited, core, inside);
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer)
    if (isNear(peer, core, inside)) return true;
  return false;
}

bool Waiter::isCrowded(const Inside& inside) const {
  const int32_t core = sched_getcpu();
  uint32_t near = 0;
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer)
    near += isNear(peer, core, inside) ? 1 : 0;
  return near >= group_.ranksPerCore();
}

bool Waiter::leaveCrowd(const Inside& inside) {
  const int64_t now = clockNs();
  if (group_.ranks() > kFewRanks || !mayLeaveCore(now) || !isCrowded(inside)) return false;
  leaveCore(inside, now);
  return true;
}

bool Waiter::metRank(int64_t sinceNs) const {
  const int32_t core = sched_getcpu();
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    const State& state = group_.lines(peer).state;
    if (peer == rank_) continue;
    if (state.running.load(std::memory_order_relaxed) > 0) return true;
    if (state.movingCore.load(std::memory_order_relaxed) == core &&
        state.movedNs.load(std::memory_order_relaxed) >= sinceNs)
      return true;
  }
  return false;
}

bool Waiter::yieldAwhile(const Look& look, int64_t* now) {
  for (int i = 0; i < kYields && *now >= contestedUntilNs_; ++i) {
    if (yieldOnce(look, now)) return true;
  }
  return false;
}

bool Waiter::mayAdjust() const {
  return group_.config().adjustsThreads || isAdopted();
}

void Waiter::adjustThread(uint64_t sequence) {
  const int64_t until = group_.shared().shortSlicesUntilNs.load(std::memory_order_relaxed);
  const int64_t now = until == 0 ? 0 : clockNs();
  if (now >= until) {
    returnShortSlices(now);
  } else if (group_.ranks() <= kFewRanks && mayAdjust()) {
    takeShortSlices(until);
  }
  if (group_.oversubscribed() && group_.hosts() == nullptr) leaveCrowd({sequence, false});
}

bool Waiter::mayLeaveCore(int64_t now) const {
  if (!mayAdjust()) return false;
  const int64_t contested = group_.shared().contestedNs.load(std::memory_order_relaxed);
  return now >= leaveCoreAfterNs_ && (contested == 0 || now - contested >= kStayAfterContestNs);
}

void Waiter::leaveCore(const Inside& inside, int64_t now) {
  leaveCoreAfterNs_ = now + kLeaveCoreEveryNs;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  uint32_t ranks[CPU_SETSIZE] = {};
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    const auto core = static_cast<uint32_t>(coreOf(peer, inside));
    if (core < CPU_SETSIZE) ++ranks[core];
  }
  const auto own = static_cast<uint32_t>(sched_getcpu());
  uint32_t freest = own;
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (core == own || !CPU_ISSET(core, &allowed)) continue;
    if (freest == own || ranks[core] < ranks[freest]) freest = core;
  }
  if (freest == own) return;
  // Updates the entry first. Otherwise the next rank to check would move there as well.
  std::atomic<int32_t>& told =
      inside.oneSided ? own_.state.core : own_.entry[inside.sequence & 1].core;
  told.store(static_cast<int32_t>(freest), std::memory_order_relaxed);
  moveToCore(freest, allowed);
}

bool Waiter::needsNeighbour(const Look& look) const {
  const int32_t core = sched_getcpu();
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (peer == rank_ || coreOf(peer, look.inside) != core) continue;
    if (peer == look.awaited || !group_.entered(peer, look.inside.sequence)) return true;
    if (look.inside.oneSided && look.awaited == kEveryRank) return true;
  }
  return false;
}

bool Waiter::yieldOnce(const Look& look, int64_t* now) {
  if (*now < contestedUntilNs_) return false;
  const bool isShared = group_.oversubscribed() && group_.ranks() <= kFewRanks;
  if (isShared && !needsNeighbour(look)) {
    for (int i = 0; look.driven == nullptr && i < kLooksElsewhere; ++i) {
      if (look()) return true;
      cpuPause();
    }
    *now = clockNs();
  }
  sched_yield();
  if (look()) return true;
  const int64_t after = clockNs();
  if (after - *now > kContestedYieldNs && !metRank(*now)) {
    contestedUntilNs_ = after + kContestedForNs;
    group_.shared().contestedNs.store(after, std::memory_order_relaxed);
    std::atomic<int64_t>& until = group_.shared().shortSlicesUntilNs;
    int64_t last = until.load(std::memory_order_relaxed);
    if (after >= last) until.compare_exchange_strong(last, after + kShortSlicesForNs);
    own_.state.contested.fetch_add(1, std::memory_order_relaxed);
  }
  *now = after;
  if (!isShared || !leaveCrowd(look.inside)) return false;
  *now = clockNs();
  return look();
}

bool Waiter::sleepOnce(const Look& look, Deadline& deadline, int64_t now, Code* code) {
  bool ready = false;
  const auto stays = [&] {
    ready = look();
    if (!ready) *code = waits_.ended(deadline, now);
    return !ready && *code == WL_OK;
  };
  group_.sleep(rank_, stays, std::min(kLongestSleepNs, deadline.left(now)));
  return ready || look();
}

}  // namespace windlass
