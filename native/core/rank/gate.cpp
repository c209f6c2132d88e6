// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank/gate.h"

#include <sched.h>
#include <unistd.h>

#include "native/base/clock.h"
#include "native/core/failure_text.h"
#include "native/core/names.h"

namespace windlass {
namespace {

constexpr int64_t kCloseLimitNs = 60'000'000'000;

}  // namespace

Code Gate::refuseSecond(wl_error_t* error) const {
  return fail(error, WL_INVALID_ARGUMENT,
              "rank %u: another thread is inside %s on this communicator; a rank's operations are "
              "called by one thread at a time",
              rank_, operationName(state_.operation.load(std::memory_order_relaxed)));
}

Code Gate::turnAway(wl_error_t* error) {
  const Code code = status(error);
  if (code != WL_CLOSED) isTold_.store(true, std::memory_order_relaxed);
  leave();
  return code;
}

Code Gate::failed(Code code, bool endedByClose, wl_error_t* error) {
  if (isRefusal(code) && group_.failure() == nullptr) return code;
  if (code != WL_CLOSED && !endedByClose) {
    isTold_.store(true, std::memory_order_relaxed);
    return told(nullptr, error);
  }
  return fail(error, WL_CLOSED, "rank %u: the communicator was closed while %s was in progress",
              rank_, OperationText(state_).text);
}

Code Gate::told(const char* prefix, wl_error_t* error) const {
  if (group_.leftOut(rank_)) return copyError(error, leftOutOf(group_, rank_), nullptr);
  return copyError(error, *group_.failure(), prefix);
}

Code Gate::status(wl_error_t* error) const {
  if (closes()) return fail(error, WL_CLOSED, "rank %u: the communicator is closed", rank_);
  return group_.failure() == nullptr ? WL_OK : told("the communicator is dead: ", error);
}

Code Gate::abort(const char* reason, wl_error_t* error) {
  if (state_.left.load(std::memory_order_seq_cst) != 0) return status(error);
  isAborted_.store(true, std::memory_order_relaxed);
  failures_.publishAborted(reason);
  return WL_OK;
}

Code Gate::blame(const wl_error_t& record, wl_error_t* error) {
  if (state_.left.load(std::memory_order_seq_cst) != 0) return status(error);
  group_.publishFailure(record);
  return WL_OK;
}

Code Gate::shut(wl_error_t* error) {
  state_.closing.exchange(1, std::memory_order_seq_cst);
  group_.wakeSleepers();
  const int64_t start = clockNs();
  for (uint32_t look = 0; state_.busy.load(std::memory_order_seq_cst) != 0; ++look) {
    if (clockNs() - start > kCloseLimitNs) {
      return fail(error, WL_DEADLINE_EXCEEDED,
                  "rank %u: a call in flight did not leave within %lld s of close()", rank_,
                  text(kCloseLimitNs / 1'000'000'000));
    }
    if (look < 64) {
      sched_yield();
    } else {
      usleep(100);
    }
  }
  return WL_OK;
}

Code Gate::untoldMismatch(wl_error_t* error) const {
  const wl_error_t* failure = group_.failure();
  if (failure == nullptr || failure->code != WL_MISMATCH) return WL_OK;
  if (isTold_.load(std::memory_order_relaxed)) return WL_OK;
  return copyError(error, *failure, nullptr);
}

}  // namespace windlass
