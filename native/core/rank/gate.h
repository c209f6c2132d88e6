// SPDX-License-Identifier: Apache-2.0
// Entry to the calls of one rank's handle. One call runs at a time. None runs after the handle was
// closed, or after the communicator failed.
#pragma once

#include "native/core/group.h"
#include "native/core/rank/rank_failures.h"

namespace windlass {

class Gate {
 public:
  Gate(Group& group, uint32_t rank, RankFailures& failures)
      : group_(group), rank_(rank), state_(group.lines(rank).state), failures_(failures) {}

  // Marks that a thread is inside a call. Fails if one already is.
  Code enter(wl_error_t* error) {
    return state_.busy.exchange(1, std::memory_order_seq_cst) == 0 ? WL_OK : refuseSecond(error);
  }
  // Like enter(), but fails if the communicator has failed or the close of this rank's handle has
  // begun.
  Code admit(wl_error_t* error) {
    if (Code code = enter(error); code != WL_OK) return code;
    return closes() || group_.failure() != nullptr ? turnAway(error) : WL_OK;
  }
  // Marks that this rank's thread has left its call.
  void leave() {
    state_.busy.exchange(0, std::memory_order_seq_cst);
    group_.wakeSleepers();
    if (group_.failure() != nullptr) group_.dropRetired();
  }
  // Returns the code of a call that failed with `code`, and fills in its text. `endedByClose`:
  // another thread's close() ended the call.
  [[gnu::cold]] Code failed(Code code, bool endedByClose, wl_error_t* error);
  // Returns true if the communicator is alive and no thread is inside a call.
  bool accepts() const {
    return group_.failure() == nullptr && !closes() &&
           state_.busy.load(std::memory_order_seq_cst) == 0;
  }
  // Returns true after the close of this rank's handle has begun.
  bool closes() const { return state_.closing.load(std::memory_order_seq_cst) != 0; }
  Code status(wl_error_t* error) const;

  // Thread-safe.
  Code abort(const char* reason, wl_error_t* error);
  // Publishes a failure that only the caller can see. Thread-safe.
  Code blame(const wl_error_t& record, wl_error_t* error);
  // Returns true if abort() was called since resetAborted(), which a shrink calls.
  bool isAborted() const { return isAborted_.load(std::memory_order_relaxed); }
  void resetAborted() { isAborted_.store(false, std::memory_order_relaxed); }

  // Refuses further calls, and waits for the call in flight. Returns DeadlineExceeded if it does
  // not leave within 60 s.
  Code shut(wl_error_t* error);
  // Returns the Mismatch that no call of this rank has returned yet.
  Code untoldMismatch(wl_error_t* error) const;

 private:
  [[gnu::cold]] Code refuseSecond(wl_error_t* error) const;
  [[gnu::cold]] Code turnAway(wl_error_t* error);
  // Returns the error of a communicator that has failed.
  Code told(const char* prefix, wl_error_t* error) const;

  Group& group_;
  const uint32_t rank_;
  State& state_;
  RankFailures& failures_;
  std::atomic<bool> isAborted_{false};
  std::atomic<bool> isTold_{false};  // a call of this rank has returned the failure record
};

}  // namespace windlass
