// SPDX-License-Identifier: Apache-2.0
// Waits of one rank for its peers in an operation, and the conditions that end them.
#pragma once

#include <utility>

#include "native/core/rank/operation.h"
#include "native/core/rank/rank_failures.h"
#include "native/core/rank/steps.h"
#include "native/core/rank/waiter.h"

namespace windlass {

// Something that a wait is for, other than the steps of an operation that all ranks enter.
class Awaited {
 public:
  // Returns Ok, or publishes why it will never happen.
  virtual Code missed() = 0;
  // Publishes that it did not happen in time.
  virtual Code late(int64_t limitNs) = 0;

 protected:
  ~Awaited() = default;
};

class Waits {
 public:
  Waits(Group& group, uint32_t rank, Operation& operation, RankFailures& failures)
      : group_(group),
        rank_(rank),
        operation_(operation),
        failures_(failures),
        allEntered_(operation.wholeSequence()),
        waiter_(group, rank, *this) {}

  // Waits until ready() returns true. `awaited` is a rank or kEveryRank.
  template <class Ready>
  Code wait(Ready&& ready, uint32_t awaited, Deadline& deadline) {
    return waiter_.wait(ready, awaited, {operation_.wholeSequence(), signal_ != nullptr},
                        deadline);
  }
  // Waits for data that this rank moves to or from the memory of a peer on another host.
  template <class Ready>
  Code waitMoved(Ready&& ready, uint32_t peer, Deadline& deadline) {
    movedWith_ = peer;
    const Code code = waiter_.wait(ready, peer, {operation_.wholeSequence(), true}, deadline);
    movedWith_ = kNobody;
    return code;
  }
  // Waits for `something`. ready() returns true once it has happened.
  template <class Ready>
  Code awaitElse(Awaited& something, Ready&& ready, uint32_t awaited, Deadline& deadline) {
    else_ = &something;
    const Code code =
        waiter_.wait(ready, awaited, {operation_.wholeSequence(), true}, deadline);
    else_ = nullptr;
    return code;
  }
  Waiter& waiter() { return waiter_; }

  // Waits until every rank has entered the previous operation, and compares their calls. A rank
  // leaves an operation without this check if its input was eager or if it waited only for the
  // root.
  Code awaitPrevious(Deadline& deadline) {
    return allEntered_ == operation_.wholeSequence() - 1 || group_.ranks() == 1
               ? WL_OK
               : awaitAllOfPrevious(deadline);
  }
  // Waits for the peer's ENTER and compares its call with this rank's call.
  Code awaitEntry(uint32_t peer, Deadline& deadline);
  // Waits until the ranks that `need` names have entered, or have ended the previous phase.
  Code awaitNeed(uint32_t need, uint32_t phase, Deadline& deadline);
  // Compares what all ranks stated. All ranks must have entered.
  Code compareAll();
  // Records that every rank has entered the operation.
  void sawAllEnter() { allEntered_ = operation_.wholeSequence(); }

  // Waits until `signal`, which only the operation's peer writes, has reached its count.
  Code awaitSignal(const uint32_t* signal, Deadline& deadline);
  // Checks the signal once.
  Code testSignal(const uint32_t* signal, bool* isReached);

  // Returns Ok, or the reason that ends every wait: a failure, this rank's close, a peer that left,
  // or the deadline.
  Code ended(Deadline& deadline, int64_t now);
  // Returns Ok, or publishes a failure record that names this rank and a peer that called a
  // different operation. This check costs more than ended(), and waits make it seldom.
  Code compared();
  // Runs when this rank leaves. Publishes a failure record if a peer called something different in
  // this rank's last operation, or left after fewer or more operations. Returns the record's code,
  // or Ok.
  Code compareLast();
  bool hasLeft(uint32_t peer) const {
    return group_.lines(peer).state.left.load(std::memory_order_seq_cst) != 0;
  }
  // Returns true if another thread's close() ended the call in flight.
  bool endedByClose() const { return endedByClose_; }

  // Sets the number of phases whose completion peers see by DONE, or 0.
  void showPhases(uint32_t phases) { shownPhases_ = phases; }
  // Sets the steps that reports show in place of these phases; nullptr: the phases. Returns the
  // previous value.
  const Steps* show(const Steps* steps) { return std::exchange(steps_, steps); }

 private:
  Code awaitAllOfPrevious(Deadline& deadline);
  // Compares what two ranks stated, which have entered.
  Code compare(uint32_t a, uint32_t b);
  // Returns Ok, or publishes a failure record that names a peer that left too early. It left before
  // it entered the operation, or before it set the signal that this rank waits for.
  Code missed();
  bool signalReached() const {
    return reached(lookAt(signal_), static_cast<uint32_t>(operation_.current().count));
  }
  bool showsSteps() const { return steps_ != nullptr && steps_->count() != 0; }
  uint32_t shownSteps() const { return showsSteps() ? steps_->count() : shownPhases_; }
  uint32_t stepsOver(uint32_t rank) const;
  Code publishDeadlineExceeded(int64_t limitNs);

  Group& group_;
  const uint32_t rank_;
  Operation& operation_;
  RankFailures& failures_;
  uint64_t allEntered_;               // every rank is known to have entered this sequence
  const uint32_t* signal_ = nullptr;  // checked by the one-sided wait in progress
  Awaited* else_ = nullptr;           // what the current wait is for, if it is no step
  uint32_t movedWith_ = kNobody;      // peer on another host whose memory the current wait is for
  uint32_t shownPhases_ = 0;
  const Steps* steps_ = nullptr;
  bool endedByClose_ = false;
  Waiter waiter_;
};

// Shows the steps of an operation during its lifetime.
class ShownSteps {
 public:
  ShownSteps(Waits& waits, const Steps& steps) : waits_(waits), before_(waits.show(&steps)) {}
  ~ShownSteps() { waits_.show(before_); }
  ShownSteps(const ShownSteps&) = delete;
  ShownSteps& operator=(const ShownSteps&) = delete;

 private:
  Waits& waits_;
  const Steps* const before_;
};

}  // namespace windlass
