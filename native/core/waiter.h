// SPDX-License-Identifier: Apache-2.0
// A rank's waits: a fast part that looks and pauses, then what fits the machine. Where each rank
// has a core it spins on; where ranks share cores it gives its own up, and sleeps on its doorbell
// where another thread computes there.
#pragma once

#include <type_traits>

#include "native/base/clock.h"
#include "native/base/cpu.h"
#include "native/core/group.h"

namespace windlass {

// Looks before a wait turns slow, where each rank has a core; and the one at which a rank that sits
// on the core of the one it waits for turns slow at once.
constexpr uint32_t kFastLooks = 256;
constexpr uint32_t kCoreLook = 8;

class Waiter {
 public:
  // What else ends a wait, asked once it is slow.
  class Ends {
   public:
    // Ok, or why the wait is over: a failure, the deadline.
    virtual Code ended(Deadline& deadline, int64_t now) = 0;
    // The same, of what costs more to find and is asked seldom: ranks that call different things.
    virtual Code compared() = 0;

   protected:
    ~Ends() = default;
  };

  // What the rank is in, which says where its peers were last seen: an operation that all enter, or
  // a wait for one peer.
  struct Inside {
    uint64_t sequence;
    bool oneSided;
  };

  Waiter(Group& group, uint32_t rank, Ends& ends)
      : group_(group), rank_(rank), own_(group.lines(rank)), ends_(ends) {}

  // Looks until ready(). `awaited` is a rank or kEveryRank.
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
                       group_.hosts() == nullptr ? nullptr : &group_};
    return waitSlow(slow, deadline);
  }

  // Nanoseconds in waits that turned slow since the last reset(), without what the rank did in
  // them for others.
  int64_t waitedNs() const { return waitedNs_; }
  void reset() { waitedNs_ = 0; }

  // Runs `work`, which moves something, and counts it as no wait.
  template <class Work>
  void move(Work&& work) {
    State& state = own_.state;
    state.movingCore.store(sched_getcpu(), std::memory_order_relaxed);
    const int64_t start = isSlow_ ? clockNs() : 0;
    work();
    const int64_t end = clockNs();
    state.movedNs.store(end, std::memory_order_relaxed);
    if (isSlow_) waitedNs_ -= end - start;
  }

  // Makes stores so far visible to ranks that sleep.
  void ring();
  // And says for whom this rank waits: a rank, -1 nobody, -2 several.
  void announce(int32_t awaited);

 private:
  // What a slow wait looks for.
  struct Look {
    bool (*ready)(void*);
    void* context;
    uint32_t awaited;
    Inside inside;
    Group* driven;  // what it looks for may have to be taken from its wire first; or nullptr

    bool operator()() const;
  };

  Code waitSlow(const Look& look, Deadline& deadline);
  // Whether an awaited rank was last seen on this rank's core, so that it runs only once this one
  // gives the core up.
  bool sharesCore(uint32_t awaited, const Inside& inside) const;
  // Whether a rank last seen on this rank's core is awaited, or has not entered the operation.
  bool needsNeighbour(const Look& look) const;
  // The core on which a peer was last seen. The entries' lines are looked at anyway; to look at the
  // state's would take it from its writer.
  int32_t coreOf(uint32_t peer, const Inside& inside) const {
    const RankLines& lines = group_.lines(peer);
    if (inside.oneSided) return lines.state.core.load(std::memory_order_relaxed);
    const uint64_t last = inside.sequence - (group_.entered(peer, inside.sequence) ? 0 : 1);
    return lines.entry[last & 1].core.load(std::memory_order_relaxed);
  }
  // Whether this thread's placing and scheduling are the library's to change.
  bool mayAdjust() const;
  // Whether this thread may be moved now: not where ranks met a thread that computes, since the
  // kernel knows which core that one needs.
  bool mayLeaveCore(int64_t now) const;
  // Whether a peer has entered this operation, and its entry names that core. Where a peer was
  // before says nothing: the kernel may have parted the two since. The same goes for one-sided
  // operations, and a wait for those moves nobody.
  bool isNear(uint32_t peer, int32_t core, const Inside& inside) const;
  // Whether an awaited rank's entry names this rank's core, so that this one had better wait on
  // another.
  bool hasNearAwaited(uint32_t awaited, const Inside& inside) const;
  // Whether the entries of as many ranks below this one as are a core's share name its core.
  bool isCrowded(const Inside& inside) const;
  // Moves this thread to the core, of those that it may use, where the fewest ranks were last seen,
  // and says so in its entry.
  void leaveCore(const Inside& inside, int64_t now);
  // Whether what had this core since then may have been a rank: one has moved something here, or
  // does so now, and the kernel may have brought it from elsewhere.
  bool metRank(int64_t sinceNs) const;
  bool yieldAwhile(const Look& look, int64_t* now);
  // Gives the core up once, unless it is contested; then whether ready().
  bool yieldOnce(const Look& look, int64_t* now);
  // Whether the look found what it waits for; `code` says what else ended the wait.
  bool sleepOnce(const Look& look, Deadline& deadline, int64_t now, Code* code);

  Group& group_;
  const uint32_t rank_;
  RankLines& own_;
  Ends& ends_;
  int64_t waitedNs_ = 0;
  bool isSlow_ = false;  // a wait in progress
  int64_t contestedUntilNs_ = 0;
  int64_t leaveCoreAfterNs_ = 0;
};

}  // namespace windlass
