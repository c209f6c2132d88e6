// SPDX-License-Identifier: Apache-2.0
// The cpu executor. It runs the items of an operation in one of two ways:
//
//  - direct, if every rank has a core or its input is eager: a rank runs its own items as soon as
//    the peers that they need have entered. Ranks claim large items, so that a waiting rank runs
//    items of others.
//  - by arrivals, if ranks exceed cores and inputs are not eager: ranks count their arrivals, and
//    the last arriver opens the operation. If it is small, the last arriver runs all items of all
//    ranks, so that an operation costs one rotation of the threads. If it is large, every rank on a
//    core claims items, its own first, one phase after the other.
#pragma once

#include "native/core/executor/executor.h"

namespace windlass {

// During its lifetime, the rank's workers run items of an operation that the rank has entered.
template <class K>
class Helped {
 public:
  Helped(Comm& comm, const Call& call, const Launch& launch, bool claims)
      : comm_(comm),
        launch_(launch),
        open_(comm.workers() != nullptr && claims && call.workBytes >= kLongWorkBytes) {
    if (open_) comm_.workers()->open(step, this);
  }
  ~Helped() {
    if (open_) comm_.workers()->close();
  }
  Helped(const Helped&) = delete;
  Helped& operator=(const Helped&) = delete;

 private:
  static bool step(void* context) {
    const Helped& own = *static_cast<Helped*>(context);
    Claims& claims = own.comm_.claims();
    return own.comm_.group().oversubscribed() ? claims.runOpenPhase<K>(own.launch_, nullptr)
                                              : claims.help<K>(own.launch_, true);
  }

  Comm& comm_;
  const Launch& launch_;
  const bool open_;
};

// ---- direct -----------------------------------------------------------------------------------

// Runs the rank's items of a phase, which no other rank claims. Inlines the kernel, because the
// items of short operations take less time than calls.
template <class K>
[[gnu::flatten]] Code runUnclaimed(Comm& comm, const Launch& launch, uint32_t blocks,
                                   uint32_t phase, Deadline& deadline) {
  if (Code code = runItems<K>(comm, launch, blocks, phase, deadline); code != WL_OK) return code;
  if (!K::kEager) comm.operation().finishPhase(comm.rank(), phase);
  return WL_OK;
}

template <class K>
Code runOwnItems(Comm& comm, const Launch& launch, uint32_t phase, bool claims,
                 Deadline& deadline) {
  const uint32_t rank = comm.rank();
  const uint32_t blocks = K::blocks(launch, rank);
  if (!claims || blocks == 0) return runUnclaimed<K>(comm, launch, blocks, phase, deadline);
  Claims& items = comm.claims();
  while (const Claims::Claim claim = items.next(rank, phase)) {
    const Code code =
        comm.waits().awaitNeed(K::needs(launch, rank, claim.block, phase), phase, deadline);
    if (code != WL_OK) return code;
    items.run<K>(launch, rank, phase, claim, nullptr);
  }
  const auto done = [&] {
    if (comm.operation().isDone(rank, phase + 1)) return true;
    items.help<K>(launch, false);
    return false;
  };
  return comm.waits().wait(done, kEveryRank, deadline);
}

template <class K>
Code runDirect(Comm& comm, const Call& call, const Launch& launch, bool claims,
               Deadline& deadline) {
  const Group& group = comm.group();
  const uint32_t rank = comm.rank();
  const uint32_t ranks = group.ranks();
  Waits& waits = comm.waits();
  // A rank that gives up checks ENTERs after it publishes its failure. This rank checks failures
  // after its ENTER. Therefore one of the two sees the other.
  if (Asks<K>::value || call.workBytes >= kLongWorkBytes) waits.waiter().announce(-1);
  bool runs;
  if (Code code = admit<K>(comm, call, launch, deadline, &runs); code != WL_OK || !runs)
    return code;
  const Helped<K> helped(comm, call, launch, claims);
  for (uint32_t phase = 0; phase < K::phases(launch); ++phase) {
    const Code code = runOwnItems<K>(comm, launch, phase, claims, deadline);
    if (code != WL_OK) return code;
  }
  const uint32_t leave = K::leavesAfter(launch, rank);
  for (uint32_t step = 1; leave != kNobody && step < ranks; ++step) {
    const uint32_t peer = rank + step < ranks ? rank + step : rank + step - ranks;
    if (leave != kEveryRank && peer != leave) continue;
    if (Code code = waits.awaitEntry(peer, deadline); code != WL_OK) return code;
    if (K::phases(launch) == 0) continue;
    const auto done = [&] {
      if (comm.operation().isDone(peer, K::phases(launch))) return true;
      if (claims) comm.claims().help<K>(launch, false);
      return false;
    };
    if (Code code = waits.wait(done, peer, deadline); code != WL_OK) return code;
  }
  if (leave == kEveryRank) waits.sawAllEnter();
  return WL_OK;
}

template <class K>
bool Claims::help(const Launch& launch, bool ownToo) {
  bool helped = false;
  const uint32_t ranks = group_.ranks();
  for (uint32_t step = ownToo ? 0 : 1; step < ranks; ++step) {
    const uint32_t owner = rank_ + step < ranks ? rank_ + step : rank_ + step - ranks;
    const uint64_t sequence = operation_.wholeSequence();
    if (!operation_.entered(owner) || !operation_.agree(rank_, owner, sequence)) continue;
    if constexpr (K::kEager) {
      if (group_.config().spansProcesses && !operation_.reachesOutput(launch, owner)) continue;
    }
    const uint64_t word = group_.lines(owner).done.word.load(std::memory_order_acquire);
    if (word >= phaseWord(sequence, K::phases(launch))) continue;
    const uint32_t phase = sequenceOf(word) == sequence ? phaseOf(word) : 0;
    const Claim claim = next(owner, phase);
    if (!claim) continue;
    const uint32_t need = K::needs(launch, owner, claim.block, phase);
    bool ready = true;
    const uint32_t last = need == kEveryRank ? ranks : need + 1;
    for (uint32_t peer = need == kEveryRank ? 0 : need; need != kNobody && ready && peer < last;
         ++peer) {
      ready = phase == 0 ? operation_.entered(peer) && operation_.agree(owner, peer, sequence)
                         : operation_.isDone(peer, phase);
    }
    if (ready && phase == 0) ask<K>(group_, launch, &ready);
    Waiter* const interrupted = ownToo ? nullptr : &waiter_;
    helped = (ready && run<K>(launch, owner, phase, claim, interrupted)) || helped;
  }
  return helped;
}

// ---- arrivals ---------------------------------------------------------------------------------

template <class K>
Code runAfterArrivals(Comm& comm, const Call& call, const Launch& launch, bool claims,
                      Deadline& deadline) {
  const Group& group = comm.group();
  const uint64_t sequence = comm.operation().wholeSequence();
  SharedLines& lines = group.shared();
  const Helped<K> helped(comm, call, launch, claims);
  const uint64_t arrived = lines.arrivals.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (arrived == comm.claims().countArrival() * group.ranks()) {
    if (Code code = comm.waits().compareAll(); code != WL_OK) return code;
    bool runs = false;
    if (Code code = ask<K>(group, launch, &runs); code != WL_OK) return code;
    runs = runs && !pulls<K>(comm, launch);
    if (runs && claims) {
      comm.claims().openPhase<K>(launch, 0);
    } else {
      for (uint32_t phase = 0; runs && phase < K::phases(launch); ++phase) {
        for (uint32_t owner = 0; owner < group.ranks(); ++owner) {
          const uint32_t blocks = K::blocks(launch, owner);
          for (uint32_t block = 0; block < blocks; ++block) K::phase(launch, owner, block, phase);
        }
      }
      lines.released.store(sequence, std::memory_order_release);
      comm.waits().sawAllEnter();
      return WL_OK;
    }
  }
  const auto released = [&] {
    if (lines.released.load(std::memory_order_acquire) >= sequence) return true;
    if (!claims) return false;
    comm.claims().runOpenPhase<K>(launch, &comm.waits().waiter());
    return lines.released.load(std::memory_order_acquire) >= sequence;
  };
  const Code code = comm.waits().wait(released, kEveryRank, deadline);
  if (code == WL_OK) comm.waits().sawAllEnter();
  return code;
}

template <class K>
void Claims::openPhase(const Launch& launch, uint32_t phase) {
  SharedLines& lines = group_.shared();
  const uint64_t sequence = operation_.wholeSequence();
  for (; phase < K::phases(launch); ++phase) {
    uint32_t remaining = 0;
    for (uint32_t owner = 0; owner < group_.ranks(); ++owner) {
      if (K::blocks(launch, owner) > 0) {
        ++remaining;
      } else {
        operation_.finishPhase(owner, phase);
      }
    }
    if (remaining == 0) continue;
    lines.remaining.store(remaining, std::memory_order_relaxed);
    lines.openPhase.store(phaseWord(sequence, phase), std::memory_order_release);
    waiter_.ring();
    return;
  }
  lines.released.store(sequence, std::memory_order_release);
  waiter_.ring();
}

template <class K>
bool Claims::runOpenPhase(const Launch& launch, Waiter* interrupted) {
  const uint64_t open = group_.shared().openPhase.load(std::memory_order_acquire);
  if (sequenceOf(open) != operation_.wholeSequence()) return false;
  bool ran = false;
  const uint32_t phase = phaseOf(open);
  const uint32_t ranks = group_.ranks();
  for (uint32_t step = 0; step < ranks; ++step) {
    const uint32_t owner = rank_ + step < ranks ? rank_ + step : rank_ + step - ranks;
    while (const Claim claim = next(owner, phase)) {
      if (!run<K>(launch, owner, phase, claim, interrupted)) continue;
      ran = true;
      if (group_.failure() != nullptr) return true;
    }
  }
  return ran;
}

template <class K>
bool Claims::run(const Launch& launch, uint32_t owner, uint32_t phase, const Claim& claim,
                 Waiter* interrupted) {
  Work& work = group_.lines(owner).work;
  uint64_t word = claim.word;
  if (!work.next.compare_exchange_strong(word, word + claim.step, std::memory_order_acq_rel)) {
    return false;
  }
  const uint32_t blocks = K::blocks(launch, owner);
  State& state = group_.lines(rank_).state;
  state.item.store(Item{owner, phase, claim.block}.word(), std::memory_order_relaxed);
  state.running.fetch_add(1, std::memory_order_relaxed);
  const auto move = [&] { K::phase(launch, owner, claim.block, phase); };
  interrupted == nullptr ? move() : interrupted->move(move);
  state.running.fetch_sub(1, std::memory_order_relaxed);
  if (work.finished.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks) {
    offer(owner, phase + 1, blocks);
    operation_.finishPhase(owner, phase);
    // The owner, and ranks that wait for it, may be asleep now.
    group_.lines(owner).done.word.fetch_add(0, std::memory_order_seq_cst);
    group_.wakeSleepers();
    if (group_.oversubscribed() &&
        group_.shared().remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      openPhase<K>(launch, phase + 1);
    }
  }
  return true;
}

// ---- choice -----------------------------------------------------------------------------------

// Runs kernel K as the rank's next operation.
template <class K>
Code runOnCpu(Comm& comm, const Call& call) {
  return operate<K>(comm, call, [&](const Launch& launch, Deadline& deadline) {
    const Group& group = comm.group();
    // Other processes cannot read a kernel's own aux, a table of items, so no other rank helps.
    const bool mayHelp = !OfLibrary<K>::value &&
                         (!group.config().spansProcesses || call.args.aux == nullptr);
    const bool countsArrivals = group.oversubscribed() && !K::kEager && mayHelp;
    const uint32_t phases = K::phases(launch);
    const bool claims = call.workBytes >= kSharedWorkBytes && mayHelp && phases != 0 &&
                        (countsArrivals || !group.oversubscribed());
    comm.waits().showPhases(claims || !(countsArrivals || K::kEager) ? phases : 0);
    Code code = enter<K>(comm, call, deadline, [&] {
      if (claims) comm.claims().offer(comm.rank(), 0, K::blocks(launch, comm.rank()));
      return preparePull<K>(comm, launch);
    });
    if (code != WL_OK) return code;
    if (!countsArrivals) return runDirect<K>(comm, call, launch, claims, deadline);
    code = runAfterArrivals<K>(comm, call, launch, claims, deadline);
    if constexpr (Pulls<K>::value) {
      if (code == WL_OK && pulls<K>(comm, launch))
        code = pull(comm, K::kPull, call, launch, deadline);
    }
    return code;
  });
}

}  // namespace windlass
