// SPDX-License-Identifier: Apache-2.0
// A rank's waits. The fast part checks and pauses. The slow part depends on the machine. If each
// rank has a core, the rank keeps spinning. If ranks share cores, it yields its core, and sleeps on
// its doorbell if another thread computes there.
#pragma once

#include <type_traits>

#include "native/base/clock.h"
#include "native/base/cpu.h"
#include "native/core/group.h"

namespace windlass {

// Number of checks before a wait turns slow if each rank has a core. If the rank shares a core with
// the rank that it waits for, the wait turns slow at check kCoreLook.
constexpr uint32_t kFastLooks = 256;
constexpr uint32_t kCoreLook = 8;

class Waits;

class Waiter {
 public:
  // The current operation of the rank: one that all ranks enter, or a wait for one peer. It
  // determines where peers were last seen.
  struct Inside {
    uint64_t sequence;
    bool oneSided;
  };

  // `waits` checks the other conditions that end a wait. Only slow waits check them.
  Waiter(Group& group, uint32_t rank, Waits& waits)
      : group_(group), rank_(rank), own_(group.lines(rank)), waits_(waits) {}

  // Waits until ready() returns true. `awaited` is a rank or kEveryRank.
  template <class Ready>
  Code wait(Ready&& ready, uint32_t awaited, const Inside& inside, Deadline& deadline) {
    const uint32_t looks = group_.oversubscribed() ? 1 : kFastLooks;
    for (uint32_t look = 0; look < looks; ++look) {
      if (ready()) return WL_OK;
      if (look == kCoreLook && sharesCore(awaited, inside)) break;
      cpuPause();
    }
    using Callable = std::remove_reference_t<Ready>;
    const Look slow = {[](void* context) { return (*static_cast<Callable*>(context))(); },
                       const_cast<std::remove_const_t<Callable>*>(&ready), awaited, inside,
                       group_.hosts()};
    return waitSlow(slow, deadline);
  }

  // Nanoseconds in waits that turned slow since the last reset(), without the work that the rank
  // did for others.
  int64_t waitedNs() const { return waitedNs_; }
  void reset() { waitedNs_ = 0; }

  // Runs `work`, which moves data, and does not count it as waiting. Peers on this core see that a
  // rank, and no foreign thread, has the core meanwhile.
  template <class Work>
  void move(Work&& work) {
    State& state = own_.state;
    state.movingCore.store(sched_getcpu(), std::memory_order_relaxed);
    state.movedNs.store(kMovesNow, std::memory_order_relaxed);
    const int64_t start = isSlow_ ? clockNs() : 0;
    work();
    const int64_t end = clockNs();
    state.movedNs.store(end, std::memory_order_relaxed);
    if (isSlow_) waitedNs_ -= end - start;
  }

  // Takes short slices if a rank lately ran beside a computing thread, and otherwise gives them
  // back. Also leaves a crowded core. If all ranks are on one core, no wait does so, because its
  // first yield ends it. All ranks call this at the end of the same operation: of two threads that
  // yield on one core, the kernel runs one of short slices many times for each time that it runs
  // one of usual slices.
  [[gnu::cold]] void adjustThread(uint64_t sequence);

  // Makes earlier stores visible to ranks that sleep, and wakes them.
  void ring();
  // Like ring(), and publishes which rank this rank waits for. -1: none; -2: several.
  void announce(int32_t awaited);

 private:
  // The condition that a slow wait checks.
  struct Look {
    bool (*ready)(void*);
    void* context;
    uint32_t awaited;
    Inside inside;
    OtherHosts* driven;  // the other hosts, whose messages the wait receives first, or nullptr

    bool operator()() const;
  };

  Code waitSlow(const Look& look, Deadline& deadline);
  // Returns true if an awaited rank was last seen on this rank's core, so that it runs only after
  // this rank yields.
  bool sharesCore(uint32_t awaited, const Inside& inside) const;
  // Returns true if a rank last seen on this rank's core is awaited or has not entered the
  // operation. Messages of several ranks await each of them.
  bool needsNeighbour(const Look& look) const;
  // The core on which a peer was last seen. Reads the entry lines, which a wait reads anyway.
  // Reading the state line would take it from its writer's cache.
  int32_t coreOf(uint32_t peer, const Inside& inside) const {
    const RankLines& lines = group_.lines(peer);
    if (inside.oneSided) return lines.state.core.load(std::memory_order_relaxed);
    const uint64_t last = inside.sequence - (group_.entered(peer, inside.sequence) ? 0 : 1);
    return lines.entry[last & 1].core.load(std::memory_order_relaxed);
  }
  // Returns true if the library may change this thread's affinity and scheduling.
  bool mayAdjust() const;
  // Returns true if this thread may be moved now. False if ranks recently ran beside a computing
  // thread, since the kernel knows the right core for that thread.
  bool mayLeaveCore(int64_t now) const;
  // Returns true if a peer has entered this operation and its entry names that core. Earlier
  // locations do not count, since the kernel may have moved a thread since. In a wait for a
  // message or a signal: if the peer is in a call that it began on that core.
  bool isNear(uint32_t peer, int32_t core, const Inside& inside) const;
  // Returns true if an awaited rank's entry names this rank's core, so that this rank should wait
  // on another core.
  bool hasNearAwaited(uint32_t awaited, const Inside& inside) const;
  // Returns true if the entries of at least ranksPerCore() other ranks name this rank's core. Ranks
  // on one core check this one after the other, so that no more of them leave than need to.
  bool isCrowded(const Inside& inside) const;
  // Leaves this core if it is crowded. Returns true if it did.
  bool leaveCrowd(const Inside& inside);
  // Moves this thread to the permitted core where the fewest ranks were last seen, and updates its
  // entry.
  void leaveCore(const Inside& inside, int64_t now);
  // Returns true if the thread that had this core since `sinceNs` may have been a rank. This is so
  // if a peer has moved data on this core since, or moves some now. It is also so if a peer runs a
  // claimed item on any core, since the kernel may have moved that peer.
  bool metRank(int64_t sinceNs) const;
  bool yieldAwhile(const Look& look, int64_t* now);
  // Yields the core once, unless it is contested. Returns true if the awaited condition holds.
  bool yieldOnce(const Look& look, int64_t* now);
  // Returns true if the awaited condition holds. Otherwise *code may say why the wait must end.
  bool sleepOnce(const Look& look, Deadline& deadline, int64_t now, Code* code);

  Group& group_;
  const uint32_t rank_;
  RankLines& own_;
  Waits& waits_;
  int64_t waitedNs_ = 0;
  bool isSlow_ = false;  // a wait is in progress
  int64_t contestedUntilNs_ = 0;
  int64_t leaveCoreAfterNs_ = 0;
};

}  // namespace windlass
