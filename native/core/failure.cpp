// SPDX-License-Identifier: Apache-2.0
// Ends of a wait, and the failure record. See native/core/failure_text.h for its text.
#include <algorithm>

#include "native/base/target.h"
#include "native/core/comm.h"
#include "native/core/failure_text.h"

namespace windlass {

Code Comm::abort(const char* reason, wl_error_t* error) {
  if (own_.state.left.load(std::memory_order_seq_cst) != 0) return status(error);
  shrinkAborted_.store(true, std::memory_order_relaxed);
  failures_.publishAborted(reason);
  return WL_OK;
}

Code Comm::blame(const wl_error_t& record, wl_error_t* error) {
  if (own_.state.left.load(std::memory_order_seq_cst) != 0) return status(error);
  group_->publishFailure(record);
  return WL_OK;
}

Code Comm::ended(Deadline& deadline, int64_t now) {
  if (group_->failure() != nullptr) return WL_ABORTED;
  if (own_.state.closing.load(std::memory_order_seq_cst) != 0) {
    failures_.publishClosed();
    endedByClose_ = true;
    return WL_CLOSED;
  }
  if (movedWith_ != kNobody) {
    if (deadline.left(now) > 0) return WL_OK;
    return failures_.publishUnmoved(movedWith_, deadline.limitNs());
  }
  if (Code code = missed(); code != WL_OK) return code;
  if (deadline.left(now) > 0) return WL_OK;
  if (signal_ == nullptr) return publishTimeout(deadline.limitNs());
  return failures_.publishSignalTimeout(current_, lookAt(signal_), deadline.limitNs());
}

bool Comm::left(uint32_t peer) const {
  return group_->lines(peer).state.left.load(std::memory_order_seq_cst) != 0;
}

Code Comm::missed() {
  if (group_->shared().leavers.load(std::memory_order_seq_cst) == 0) return WL_OK;
  if (signal_ != nullptr) {
    // The peer may have notified between the last check and its leave.
    return left(currentPeer()) && !signalReached() ? failures_.publishLeft(current_) : WL_OK;
  }
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!left(peer) || group_->entered(peer, sequence_)) continue;
    return failures_.publishMissed(peer);
  }
  return WL_OK;
}

Code Comm::compared() {
  if (signal_ != nullptr || !group_->entered(rank_, sequence_)) return WL_OK;
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!group_->entered(peer, sequence_)) continue;
    if (!agree(rank_, peer, sequence_)) return failures_.publishMismatch(rank_, peer, sequence_);
  }
  return WL_OK;
}

uint32_t Comm::shownSteps() const {
  if (progress_ != nullptr) return progress_->phases;
  return isPulling_ && pulling_->steps() != 0 ? pulling_->steps() : shownPhases_;
}

uint32_t Comm::stepsOver(uint32_t rank) const {
  if (progress_ != nullptr) return progress_->ranks[rank].over;
  if (isPulling_ && pulling_->steps() != 0) return pulling_->stepsOver(rank);
  if (group_->config().deviceCores == 0 || isPulling_) {
    const uint64_t word = group_->lines(rank).done.word.load(std::memory_order_acquire);
    // A rank in a later operation has completed all steps of this one.
    if (sequenceOf(word) > sequence_) return shownSteps();
    return sequenceOf(word) == sequence_ ? phaseOf(word) : 0;
  }
  const InLine own = inLine(0);
  uint32_t fewest = kMostPhases;
  for (uint32_t core = 0; core < own.cores; ++core) {
    const int32_t* const line = own.line(rank_, rank, core, group_->ranks());
    const uint32_t told = lookAt(reinterpret_cast<const uint32_t*>(line));
    fewest = std::min(fewest, reached(told, own.word(0)) ? told - own.word(0) : 0);
  }
  return fewest;
}

bool Comm::isUnmet(uint32_t peer) const {
  if (owesWhy_ != kNobody) return peer == owesWhy_;
  const auto hasTurn = [&](uint32_t rank) {
    return group_->block().offloadLine(rank).taken.load(std::memory_order_acquire) >= sequence_;
  };
  const auto stated = [&](uint32_t rank) {
    return group_->block().offloadLine(rank).turn.load(std::memory_order_acquire);
  };
  if (!hasTurn(peer)) {
    for (uint32_t rank = 0; rank < group_->ranks(); ++rank)
      if (group_->isProcessBefore(rank, peer) && !hasTurn(rank)) return false;
    return true;
  }
  uint64_t fewest = stated(rank_);
  for (uint32_t rank = 0; rank < group_->ranks(); ++rank) {
    if (!hasTurn(rank)) return false;
    fewest = std::min(fewest, stated(rank));
  }
  return stated(peer) == fewest && fewest < stated(rank_);
}

// Names the ranks with the lowest sequence, except ranks that wait for another rank there. If all
// ranks have entered, it names the first group that is not empty:
//  - Ranks that have not reported what hosts wait for when they hand the operation to their
//    devices.
//  - Other ranks that are inside and do not wait.
//  - The calling rank, if it or one of its workers runs an item.
//  - Ranks with the fewest completed steps, if these are known. This includes the calling rank if
//    it is the only one.
Code Comm::publishTimeout(int64_t limitNs) {
  int32_t culprits[WL_ERROR_CULPRITS];
  uint32_t count = 0;
  const auto collect = [&](auto&& guilty) {
    for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
      if (peer == rank_ || !guilty(peer)) continue;
      if (count < WL_ERROR_CULPRITS) culprits[count] = static_cast<int32_t>(peer);
      ++count;
    }
    return count > 0;
  };
  const auto isMissing = [&](uint32_t peer) { return !group_->entered(peer, sequence_); };
  // True if the rank waits in the previous operation, for example only for its own host.
  const auto isHeldUp = [&](uint32_t peer) {
    const State& state = group_->lines(peer).state;
    return state.busy.load() != 0 && state.sequence.load() == sequence() - 1 &&
           takesSequence(state.operation.load()) && state.awaited.load() != -1;
  };
  const bool behind =
      collect([&](uint32_t peer) { return !group_->entered(peer, sequence_ - 1); }) ||
      collect([&](uint32_t peer) { return isMissing(peer) && !isHeldUp(peer); }) ||
      collect(isMissing);
  const bool isMet =
      behind || !meetsOnHosts_ || !collect([&](uint32_t peer) { return isUnmet(peer); });
  if (!behind && isMet) {
    // A device does not report whom it waits for.
    const bool works = progress_ == nullptr && collect([&](uint32_t peer) {
      const State& state = group_->lines(peer).state;
      return state.busy.load() != 0 && state.sequence.load() == sequence() &&
             state.operation.load() == current_.operation() &&
             // A waiting rank runs items of other ranks if ranks claim items.
             (state.awaited.load() == -1 || state.running.load() > 0);
    });
    // The rank, or one of its workers, runs an item.
    if (!works && own_.state.running.load() > 0) {
      culprits[count++] = static_cast<int32_t>(rank_);
    } else if (!works && shownSteps() != 0) {
      uint32_t fewest = shownSteps();
      for (uint32_t rank = 0; rank < group_->ranks(); ++rank)
        fewest = std::min(fewest, stepsOver(rank));
      const auto slowest = [&](uint32_t rank) {
        return fewest < shownSteps() && stepsOver(rank) == fewest;
      };
      // A device that waits for no other rank is itself the reason.
      if (!collect(slowest) && (progress_ != nullptr || slowest(rank_)))
        culprits[count++] = static_cast<int32_t>(rank_);
    }
  }
  return failures_.publish(WL_TIMEOUT, culprits, count, [&](Text& out) {
    writeTimeout(out, *group_, rank_, current_, sequence(), culprits, count, behind, limitNs);
    if (progress_ != nullptr) writeProgress(out, *progress_, culprits, count);
  });
}

}  // namespace windlass
