// SPDX-License-Identifier: Apache-2.0
// Calls of a device's driver as a thread makes them for somebody who waits for it: which call it is
// in, and since when. Of one that does not return, the thread is given up: it goes no further than
// the end of that call, if that ever comes, and so touches nothing more of what it was given.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "native/base/clock.h"
#include "native/base/yielding.h"

namespace windlass {

class WatchedCalls {
 public:
  WatchedCalls() = default;
  WatchedCalls(const WatchedCalls&) = delete;
  WatchedCalls& operator=(const WatchedCalls&) = delete;

  // The calling thread's calls are watched here from now on.
  void watchThisThread() { own_ = this; }

  // A call of the calling thread, or a wait behind calls of others; `call` lasts. Where the thread
  // was given up meanwhile it goes no further than the end of this.
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

  // Waits for a lock behind which others call the driver, as a call of the calling thread's.
  static void lock(std::mutex& mutex) {
    if (mutex.try_lock()) return;
    WatchedCalls* const calls = own_;
    if (calls != nullptr) calls->enter(kOfOthers);
    lockYielding(mutex);
    if (calls == nullptr || calls->tryLeave()) return;
    mutex.unlock();
    stay();
  }

  // A wait for a call that another rank's thread makes.
  static constexpr char kOfOthers[] = "a call that another rank makes";
  bool isOfOthers() const { return call_.load(std::memory_order_relaxed) == kOfOthers; }

  // Any thread: the call that has lasted since that time at least; nullptr: there is none such.
  const char* since(int64_t sinceNs) const {
    const int64_t began = began_.load(std::memory_order_acquire);
    return began != kOutside && began <= sinceNs ? call_.load(std::memory_order_relaxed) : nullptr;
  }
  // Any thread: gives the watched one up that is in such a call, which this returns.
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
  // Whether the thread was not given up.
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

// A lock that is held while the driver is called, by one thread after another.
class WatchedLock {
 public:
  explicit WatchedLock(std::mutex& mutex) : mutex_(mutex) { WatchedCalls::lock(mutex); }
  ~WatchedLock() { mutex_.unlock(); }
  WatchedLock(const WatchedLock&) = delete;
  WatchedLock& operator=(const WatchedLock&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace windlass
