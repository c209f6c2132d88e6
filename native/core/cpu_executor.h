// SPDX-License-Identifier: Apache-2.0
// The cpu executor. It runs the items of an operation in one of two ways:
//
//  - direct, if every rank has a core or its input is eager: a rank runs its own items as soon as
//    the peers that they need have entered. Ranks claim large items, so that a waiting rank runs
//    items of others.
//  - meeting, if ranks exceed cores and inputs are not eager: ranks count their arrivals, and the
//    last arriver opens the operation. If it is small, the last arriver runs all items of all
//    ranks, so that an operation costs one rotation of the threads. If it is large, every rank on a
//    core claims items, its own first, one phase after the other.
#pragma once

#include "native/core/executor.h"

namespace windlass {

template <class K>
Code Comm::run(const Call& call) {
  return operate<K>(call, [&](const Launch& launch, Deadline& deadline) {
    // Other processes cannot read a kernel's own aux, a table of items, so no other rank helps.
    const bool mayHelp = !OfLibrary<K>::value &&
                         (!group_->config().spansProcesses || call.args.aux == nullptr);
    const bool meets = group_->oversubscribed() && !K::kEager && mayHelp;
    const uint32_t phases = K::phases(launch);
    claims_ = call.workBytes >= kSharedWorkBytes && mayHelp && phases != 0 &&
              (meets || !group_->oversubscribed());
    shownPhases_ = claims_ || !(meets || K::kEager) ? phases : 0;
    // The same steps as in enter(), in fewer instructions.
    Code code = awaitPrevious(deadline);
    if (code != WL_OK) return code;
    fillEntry(call, kRides<K>);
    if (claims_) offerItems(rank_, 0, K::blocks(launch, rank_));
    if constexpr (Pulls<K>::value) {
      if (pulling_ != nullptr) pulling_->beforeEntry(K::kPull, launch);
    }
    publishEntry();
    code = meets ? runMeeting<K>(call, launch, deadline) : runDirect<K>(call, launch, deadline);
    if constexpr (Pulls<K>::value) {
      if (code == WL_OK && group_->config().spansProcesses && pulls(launch))
        code = pull(K::kPull, call, launch, deadline);
    }
    return code;
  });
}

// During its lifetime, this rank's workers run items of an operation that the rank has entered.
template <class K>
class Comm::Helped {
 public:
  Helped(Comm& comm, const Call& call, const Launch& launch)
      : comm_(comm),
        launch_(launch),
        open_(comm.workers_ != nullptr && comm.claims_ && call.workBytes >= kLongWorkBytes) {
    if (open_) comm_.workers_->open(step, this);
  }
  ~Helped() {
    if (open_) comm_.workers_->close();
  }
  Helped(const Helped&) = delete;
  Helped& operator=(const Helped&) = delete;

 private:
  static bool step(void* context) {
    const Helped& own = *static_cast<Helped*>(context);
    return own.comm_.group_->oversubscribed() ? own.comm_.runOpenPhase<K>(own.launch_, nullptr)
                                              : own.comm_.help<K>(own.launch_, true);
  }

  Comm& comm_;
  const Launch& launch_;
  const bool open_;
};

// ---- direct -----------------------------------------------------------------------------------

template <class K>
Code Comm::runDirect(const Call& call, const Launch& launch, Deadline& deadline) {
  const uint32_t ranks = group_->ranks();
  // A rank that gives up checks ENTERs after it publishes its failure. This rank checks failures
  // after its ENTER. Therefore one of the two sees the other.
  if (Asks<K>::value || call.workBytes >= kLongWorkBytes) waiter_.announce(-1);
  if constexpr (Asks<K>::value) {
    const Code code = awaitNeed(kEveryRank, 0, deadline);
    if (code != WL_OK) return code;
    bool runs = false;
    if (Code asked = ask<K>(launch, &runs); asked != WL_OK || !runs) return asked;
    if (call.far != nullptr) return pullItems(call, launch, deadline);
  }
  if constexpr (Pulls<K>::value) {
    if (group_->config().spansProcesses) {
      const Code code = awaitNeed(kEveryRank, 0, deadline);
      if (code != WL_OK || pulls(launch)) return code;
    }
  }
  const Helped<K> helped(*this, call, launch);
  for (uint32_t phase = 0; phase < K::phases(launch); ++phase) {
    const Code code = runOwnItems<K>(launch, phase, deadline);
    if (code != WL_OK) return code;
  }
  const uint32_t leave = K::leavesAfter(launch, rank_);
  for (uint32_t step = 1; leave != kNobody && step < ranks; ++step) {
    const uint32_t peer = rank_ + step < ranks ? rank_ + step : rank_ + step - ranks;
    if (leave != kEveryRank && peer != leave) continue;
    if (Code code = awaitEntry(peer, deadline); code != WL_OK) return code;
    if (K::phases(launch) == 0) continue;
    const auto done = [&] {
      if (group_->done(peer, sequence_, K::phases(launch))) return true;
      if (claims_) help<K>(launch, false);
      return false;
    };
    if (Code code = wait(done, peer, deadline); code != WL_OK) return code;
  }
  if (leave == kEveryRank) allEntered_ = sequence_;
  return WL_OK;
}

template <class K>
Code Comm::runOwnItems(const Launch& launch, uint32_t phase, Deadline& deadline) {
  const uint32_t blocks = K::blocks(launch, rank_);
  if (!claims_ || blocks == 0) {
    for (uint32_t block = 0; block < blocks; ++block) {
      const Code code = awaitNeed(K::needs(launch, rank_, block, phase), phase, deadline);
      if (code != WL_OK) return code;
      K::phase(launch, rank_, block, phase);
    }
    if (!K::kEager) finishPhase(rank_, phase);
    return WL_OK;
  }
  while (const Claim claim = nextClaim(rank_, phase)) {
    const Code code = awaitNeed(K::needs(launch, rank_, claim.block, phase), phase, deadline);
    if (code != WL_OK) return code;
    runClaimed<K>(launch, rank_, phase, claim, nullptr);
  }
  const auto done = [&] {
    if (group_->done(rank_, sequence_, phase + 1)) return true;
    help<K>(launch, false);
    return false;
  };
  return wait(done, kEveryRank, deadline);
}

template <class K>
bool Comm::help(const Launch& launch, bool ownToo) {
  bool helped = false;
  for (uint32_t step = ownToo ? 0 : 1; step < group_->ranks(); ++step) {
    const uint32_t owner =
        rank_ + step < group_->ranks() ? rank_ + step : rank_ + step - group_->ranks();
    if (!group_->entered(owner, sequence_) || !agree(rank_, owner, sequence_)) continue;
    if constexpr (K::kEager) {
      if (group_->config().spansProcesses && !reachesOutput(launch, owner)) continue;
    }
    const uint64_t word = group_->lines(owner).done.word.load(std::memory_order_acquire);
    if (word >= phaseWord(sequence_, K::phases(launch))) continue;
    const uint32_t phase = sequenceOf(word) == sequence_ ? phaseOf(word) : 0;
    const Claim claim = nextClaim(owner, phase);
    if (!claim) continue;
    const uint32_t need = K::needs(launch, owner, claim.block, phase);
    bool ready = true;
    const uint32_t last = need == kEveryRank ? group_->ranks() : need + 1;
    for (uint32_t peer = need == kEveryRank ? 0 : need; need != kNobody && ready && peer < last;
         ++peer) {
      ready = phase == 0 ? group_->entered(peer, sequence_) && agree(owner, peer, sequence_)
                         : group_->done(peer, sequence_, phase);
    }
    if (ready && phase == 0) ask<K>(launch, &ready);
    Waiter* const interrupted = ownToo ? nullptr : &waiter_;
    helped = (ready && runClaimed<K>(launch, owner, phase, claim, interrupted)) || helped;
  }
  return helped;
}

// ---- meeting ----------------------------------------------------------------------------------

template <class K>
Code Comm::runMeeting(const Call& call, const Launch& launch, Deadline& deadline) {
  SharedLines& lines = group_->shared();
  const Helped<K> helped(*this, call, launch);
  const uint64_t arrived = lines.arrivals.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (arrived == ++meetings_ * group_->ranks()) {
    if (Code code = compareAll(); code != WL_OK) return code;
    bool runs = false;
    if (Code code = ask<K>(launch, &runs); code != WL_OK) return code;
    if constexpr (Pulls<K>::value) runs = !group_->config().spansProcesses || !pulls(launch);
    if (runs && claims_) {
      openPhase<K>(launch, 0);
    } else {
      for (uint32_t phase = 0; runs && phase < K::phases(launch); ++phase) {
        for (uint32_t owner = 0; owner < group_->ranks(); ++owner) {
          const uint32_t blocks = K::blocks(launch, owner);
          for (uint32_t block = 0; block < blocks; ++block) K::phase(launch, owner, block, phase);
        }
      }
      lines.released.store(sequence_, std::memory_order_release);
      allEntered_ = sequence_;
      return WL_OK;
    }
  }
  const auto released = [&] {
    if (lines.released.load(std::memory_order_acquire) >= sequence_) return true;
    if (!claims_) return false;
    runOpenPhase<K>(launch, &waiter_);
    return lines.released.load(std::memory_order_acquire) >= sequence_;
  };
  const Code code = wait(released, kEveryRank, deadline);
  if (code == WL_OK) allEntered_ = sequence_;
  return code;
}

// Opens the items of `phase`, or of the first later phase that has any. Releases all ranks after
// the last phase. One thread at a time calls this: the last arriver, then the thread that
// finishes the last item of a phase.
template <class K>
void Comm::openPhase(const Launch& launch, uint32_t phase) {
  SharedLines& lines = group_->shared();
  for (; phase < K::phases(launch); ++phase) {
    uint32_t remaining = 0;
    for (uint32_t owner = 0; owner < group_->ranks(); ++owner) {
      if (K::blocks(launch, owner) > 0) {
        ++remaining;
      } else {
        finishPhase(owner, phase);
      }
    }
    if (remaining == 0) continue;
    lines.remaining.store(remaining, std::memory_order_relaxed);
    lines.openPhase.store(phaseWord(sequence_, phase), std::memory_order_release);
    waiter_.ring();
    return;
  }
  lines.released.store(sequence_, std::memory_order_release);
  waiter_.ring();
}

template <class K>
bool Comm::runOpenPhase(const Launch& launch, Waiter* interrupted) {
  SharedLines& lines = group_->shared();
  const uint64_t open = lines.openPhase.load(std::memory_order_acquire);
  if (sequenceOf(open) != sequence_) return false;
  bool ran = false;
  const uint32_t phase = phaseOf(open);
  const uint32_t ranks = group_->ranks();
  for (uint32_t step = 0; step < ranks; ++step) {
    const uint32_t owner = rank_ + step < ranks ? rank_ + step : rank_ + step - ranks;
    while (const Claim claim = nextClaim(owner, phase)) {
      if (!runClaimed<K>(launch, owner, phase, claim, interrupted)) continue;
      ran = true;
      if (group_->failure() != nullptr) return true;
    }
  }
  return ran;
}

template <class K>
bool Comm::runClaimed(const Launch& launch, uint32_t owner, uint32_t phase, const Claim& claim,
                      Waiter* interrupted) {
  Work& work = group_->lines(owner).work;
  uint64_t word = claim.word;
  if (!work.next.compare_exchange_strong(word, word + claim.step, std::memory_order_acq_rel)) {
    return false;
  }
  const uint32_t blocks = K::blocks(launch, owner);
  own_.state.item.store(Item{owner, phase, claim.block}.word(), std::memory_order_relaxed);
  own_.state.running.fetch_add(1, std::memory_order_relaxed);
  const auto run = [&] { K::phase(launch, owner, claim.block, phase); };
  interrupted == nullptr ? run() : interrupted->move(run);
  own_.state.running.fetch_sub(1, std::memory_order_relaxed);
  if (work.finished.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks) {
    offerItems(owner, phase + 1, blocks);
    finishPhase(owner, phase);
    // The owner, and ranks that wait for it, may be asleep now.
    group_->lines(owner).done.word.fetch_add(0, std::memory_order_seq_cst);
    group_->wakeSleepers();
    if (group_->oversubscribed() &&
        group_->shared().remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      openPhase<K>(launch, phase + 1);
    }
  }
  return true;
}

}  // namespace windlass
