// SPDX-License-Identifier: Apache-2.0
// Driver calls of a thread, watched for another thread that waits for it: which call it is in, and
// since when. If a call does not return, the watched thread is abandoned. It then stops at the end
// of that call and touches nothing it was given any more.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "native/base/clock.h"
#include "native/base/yielding.h"

namespace windlass {

class WatchedCalls {
 public:
  // Watches the calling thread's calls from now on.
  void watchThisThread() { own_ = this; }

  // A call of the calling thread, or its wait for calls of others. `call` must stay valid. If the
  // thread is abandoned meanwhile, it stops at the end of this scope.
  class Scope {
   public:
    explicit Scope(const char* call) : calls_(own_) {
      if (calls_ != nullptr) calls_->enter(call);
    }
    ~Scope() {
      if (calls_ != nullptr) calls_->leave();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WatchedCalls* const calls_;
  };

  // Takes a lock under which threads call the driver. The wait is watched like a call.
  static std::unique_lock<std::mutex> lock(std::mutex& mutex) {
    std::unique_lock<std::mutex> held(mutex, std::try_to_lock);
    if (held.owns_lock()) return held;
    WatchedCalls* const calls = own_;
    if (calls != nullptr) calls->enter(kOfOthers);
    held = lockYielding(mutex);
    if (calls == nullptr || calls->tryLeave()) return held;
    held.unlock();
    stay();
  }

  // Name of a wait for another rank's call.
  static constexpr char kOfOthers[] = "a call that another rank makes";
  bool isOfOthers() const { return call_.load(std::memory_order_relaxed) == kOfOthers; }

  // Returns the call in progress if it began at `sinceNs` or before; otherwise nullptr. Any thread.
  const char* since(int64_t sinceNs) const {
    const int64_t began = began_.load(std::memory_order_acquire);
    return began != kOutside && began <= sinceNs ? call_.load(std::memory_order_relaxed) : nullptr;
  }
  // Abandons the watched thread if it is in such a call, and returns that call. Any thread.
  const char* giveUp(int64_t sinceNs) {
    int64_t began = began_.load(std::memory_order_acquire);
    if (began == kOutside || began == kGivenUp || began > sinceNs) return nullptr;
    const char* const call = call_.load(std::memory_order_relaxed);
    return began_.compare_exchange_strong(began, kGivenUp, std::memory_order_acq_rel) ? call
                                                                                       : nullptr;
  }

 private:
  static constexpr int64_t kOutside = 0;
  static constexpr int64_t kGivenUp = -1;

  void enter(const char* call) {
    call_.store(call, std::memory_order_relaxed);
    began_.store(clockNs(), std::memory_order_release);
  }
  // Returns true unless the thread was abandoned.
  bool tryLeave() {
    int64_t began = began_.load(std::memory_order_relaxed);
    return began != kGivenUp &&
           began_.compare_exchange_strong(began, kOutside, std::memory_order_acq_rel);
  }
  void leave() {
    if (!tryLeave()) stay();
  }
  [[noreturn]] static void stay() {
    for (;;) pause();
  }

  inline static thread_local WatchedCalls* own_ = nullptr;

  std::atomic<const char*> call_{nullptr};
  std::atomic<int64_t> began_{kOutside};
};

// Runs body() on a new thread, so that the caller returns even if a driver call does not. Returns
// nullptr once body() has ended. After limitNs, returns the driver call that does not return. The
// objects that body() holds then stay allocated. body() may access only these objects, and must not
// throw. Throws std::system_error and std::bad_alloc.
const char* runWatched(std::function<void()> body, int64_t limitNs);

}  // namespace windlass
