// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank/waits.h"

#include <algorithm>

namespace windlass {

Code Waits::awaitAllOfPrevious(Deadline& deadline) {
  const uint64_t previous = operation_.wholeSequence() - 1;
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    const Code code = wait([&] { return group_.entered(peer, previous); }, peer, deadline);
    if (code != WL_OK) return code;
    if (!operation_.agree(rank_, peer, previous))
      return failures_.publishMismatch(rank_, peer, previous);
  }
  allEntered_ = previous;
  return WL_OK;
}

Code Waits::compare(uint32_t a, uint32_t b) {
  const uint64_t sequence = operation_.wholeSequence();
  return operation_.agree(a, b, sequence) ? WL_OK : failures_.publishMismatch(a, b, sequence);
}

Code Waits::awaitEntry(uint32_t peer, Deadline& deadline) {
  const Code code = wait([&] { return operation_.entered(peer); }, peer, deadline);
  if (code != WL_OK) return code;
  return compare(rank_, peer);
}

Code Waits::awaitNeed(uint32_t need, uint32_t phase, Deadline& deadline) {
  if (need == kNobody) return WL_OK;
  const uint32_t first = need == kEveryRank ? 0 : need;
  const uint32_t last = need == kEveryRank ? group_.ranks() : need + 1;
  for (uint32_t peer = first; peer < last; ++peer) {
    if (peer == rank_) continue;
    const Code code =
        phase == 0 ? awaitEntry(peer, deadline)
                   : wait([&] { return operation_.isDone(peer, phase); }, peer, deadline);
    if (code != WL_OK) return code;
  }
  if (need == kEveryRank && phase == 0) sawAllEnter();
  return WL_OK;
}

Code Waits::compareAll() {
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (Code code = compare(rank_, peer); code != WL_OK) return code;
  }
  for (uint32_t a = 0; operation_.current().pairsParts() && a < group_.ranks(); ++a) {
    for (uint32_t b = a + 1; b < group_.ranks(); ++b) {
      if (Code code = compare(a, b); code != WL_OK) return code;
    }
  }
  return WL_OK;
}

Code Waits::awaitSignal(const uint32_t* signal, Deadline& deadline) {
  signal_ = signal;
  const Code code = wait([this] { return signalReached(); }, operation_.peer(), deadline);
  signal_ = nullptr;
  return code;
}

Code Waits::testSignal(const uint32_t* signal, bool* isReached) {
  signal_ = signal;
  *isReached = signalReached();
  const Code code = *isReached ? WL_OK : missed();
  signal_ = nullptr;
  return code;
}

Code Waits::ended(Deadline& deadline, int64_t now) {
  if (group_.failure() != nullptr) return WL_ABORTED;
  if (group_.lines(rank_).state.closing.load(std::memory_order_seq_cst) != 0) {
    failures_.publishClosed();
    endedByClose_ = true;
    return WL_CLOSED;
  }
  if (else_ != nullptr) {
    if (Code code = else_->missed(); code != WL_OK) return code;
    return deadline.left(now) > 0 ? WL_OK : else_->late(deadline.limitNs());
  }
  if (movedWith_ != kNobody) {
    if (deadline.left(now) > 0) return WL_OK;
    return failures_.publishUnmoved(movedWith_, deadline.limitNs());
  }
  if (Code code = missed(); code != WL_OK) return code;
  if (deadline.left(now) > 0) return WL_OK;
  if (signal_ == nullptr) return publishDeadlineExceeded(deadline.limitNs());
  return failures_.publishMissingSignal(operation_.current(), lookAt(signal_), deadline.limitNs());
}

Code Waits::missed() {
  if (group_.shared().leavers.load(std::memory_order_seq_cst) == 0) return WL_OK;
  if (signal_ != nullptr) {
    // The peer may have notified after the last check, and then left.
    return hasLeft(operation_.peer()) && !signalReached()
               ? failures_.publishLeft(operation_.current())
               : WL_OK;
  }
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (!hasLeft(peer) || operation_.entered(peer)) continue;
    return failures_.publishMissed(peer);
  }
  return WL_OK;
}

Code Waits::compared() {
  if (signal_ != nullptr || else_ != nullptr || !operation_.entered(rank_)) return WL_OK;
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (!operation_.entered(peer)) continue;
    if (Code code = compare(rank_, peer); code != WL_OK) return code;
  }
  return WL_OK;
}

Code Waits::compareLast() {
  if (Code code = compared(); code != WL_OK) return code;
  const uint64_t sequence = operation_.wholeSequence();
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (peer == rank_ || !hasLeft(peer)) continue;
    // Ranks are at most one operation apart: each enters an operation after all have entered the
    // previous one.
    if (!operation_.entered(peer)) return failures_.publishUnmatched(rank_, peer, sequence);
    if (group_.entered(peer, sequence + 1))
      return failures_.publishUnmatched(peer, rank_, sequence + 1);
  }
  return WL_OK;
}

uint32_t Waits::stepsOver(uint32_t rank) const {
  if (showsSteps()) return steps_->over(rank);
  const uint64_t word = group_.lines(rank).done.word.load(std::memory_order_acquire);
  // A rank in a later operation has completed all steps of this one.
  const uint64_t sequence = operation_.wholeSequence();
  if (sequenceOf(word) > sequence) return shownPhases_;
  return sequenceOf(word) == sequence ? phaseOf(word) : 0;
}

// Names the ranks with the lowest sequence, except ranks that wait for another rank there. If all
// ranks have entered, it names the first group that is not empty:
//  - Ranks whose report this rank's host waits for while it hands the operation to its device.
//  - Other ranks that are inside and do not wait.
//  - The calling rank, if it or one of its workers runs an item.
//  - Ranks with the fewest completed steps, if these are known. This includes the calling rank if
//    it is the only one.
Code Waits::publishDeadlineExceeded(int64_t limitNs) {
  wl_error_t record = blankError(WL_DEADLINE_EXCEEDED);
  const auto collect = [&](auto&& guilty) {
    for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
      if (peer != rank_ && guilty(peer)) addFaultyRank(&record, peer);
    }
    return record.faulty_rank_count > 0;
  };
  const auto isMissing = [&](uint32_t peer) { return !operation_.entered(peer); };
  // True if the rank still waits for another rank in the previous operation.
  const auto isHeldUp = [&](uint32_t peer) {
    const State& state = group_.lines(peer).state;
    return state.busy.load() != 0 && state.sequence.load() == operation_.sequence() - 1 &&
           takesSequence(state.operation.load()) && state.awaited.load() != -1;
  };
  const uint64_t previous = operation_.wholeSequence() - 1;
  const bool behind =
      collect([&](uint32_t peer) { return !group_.entered(peer, previous); }) ||
      collect([&](uint32_t peer) { return isMissing(peer) && !isHeldUp(peer); }) ||
      collect(isMissing);
  const bool isMet = behind || steps_ == nullptr ||
                     !collect([&](uint32_t peer) { return steps_->isUnmet(peer); });
  const bool onDevices = steps_ != nullptr && steps_->areOfDevices();
  if (!behind && isMet) {
    // A device does not report whom it waits for.
    const bool works = !onDevices && collect([&](uint32_t peer) {
      const State& state = group_.lines(peer).state;
      return state.busy.load() != 0 && state.sequence.load() == operation_.sequence() &&
             state.operation.load() == operation_.current().operation() &&
             // A waiting rank runs items of other ranks if ranks claim items.
             (state.awaited.load() == -1 || state.running.load() > 0);
    });
    // The rank, or one of its workers, runs an item.
    if (!works && group_.lines(rank_).state.running.load() > 0) {
      addFaultyRank(&record, rank_);
    } else if (!works && shownSteps() != 0) {
      uint32_t fewest = shownSteps();
      for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
        fewest = std::min(fewest, stepsOver(rank));
      const auto slowest = [&](uint32_t rank) {
        return fewest < shownSteps() && stepsOver(rank) == fewest;
      };
      // A device that waits for no other rank is itself the reason.
      if (!collect(slowest) && (onDevices || slowest(rank_))) addFaultyRank(&record, rank_);
    }
  }
  const Steps* const devices = onDevices ? steps_ : nullptr;
  return failures_.publishDeadlineExceeded(operation_.current(), record, behind, devices, limitNs);
}

}  // namespace windlass
