// SPDX-License-Identifier: Apache-2.0
// Mutex of the threads that call UCX. They stop calling it when the process ends.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace windlass {

// Recursive mutex. When the process ends, UCX's destructors run while other threads still run. A
// call of UCX after them uses freed memory. The destructor of this library runs before them, and
// ends all calls: it waits until no other thread has such a mutex, for at most kEndNs in all.
class UcxMutex {
 public:
  static constexpr int64_t kEndNs = 1'000'000'000;

  UcxMutex();
  ~UcxMutex();

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  // True once nothing may call UCX.
  static bool haveEnded() { return ended_.load(std::memory_order_acquire); }
  // Called once, by the destructor of this library.
  static void end();

 private:
  // Visits each mutex that was not free before. False if one of them is still not free.
  static bool areFree();

  static std::atomic<bool> ended_;
  static std::mutex list_;  // guards first_, and the members below of each
  static UcxMutex* first_;

  std::recursive_mutex mutex_;
  const pid_t process_;  // a fork's mutexes may be held for threads that it does not have
  bool wasFree_ = false;
  UcxMutex* before_ = nullptr;
  UcxMutex* next_ = nullptr;
};

// Message of an error.
constexpr const char* kUcxHasEnded =
    "UCX has ended, because this process is ending; open no more wires";

// Scope in which a thread has a mutex and may call UCX. It is false, and has no mutex, if calls
// have ended.
class UcxCalls {
 public:
  // With std::try_to_lock, does not wait: the scope is also false while another thread has the
  // mutex.
  template <class... How>
  explicit UcxCalls(UcxMutex& mutex, How... how) {
    if (!UcxMutex::haveEnded()) lock_ = std::unique_lock<UcxMutex>(mutex, how...);
    // end() may have passed this mutex before this thread had it.
    if (lock_.owns_lock() && UcxMutex::haveEnded()) lock_.unlock();
  }
  explicit operator bool() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<UcxMutex> lock_;
};

}  // namespace windlass
