// SPDX-License-Identifier: Apache-2.0
#include "native/hosts/ucx/library/ucx_mutex.h"

#include <unistd.h>

#include "native/base/clock.h"

namespace windlass {

std::atomic<bool> UcxMutex::ended_{false};
std::mutex UcxMutex::list_;
UcxMutex* UcxMutex::first_ = nullptr;

UcxMutex::UcxMutex() : process_(getpid()) {
  const std::lock_guard<std::mutex> lock(list_);
  next_ = first_;
  if (next_ != nullptr) next_->before_ = this;
  first_ = this;
}

UcxMutex::~UcxMutex() {
  const std::lock_guard<std::mutex> lock(list_);
  (before_ == nullptr ? first_ : before_->next_) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

bool UcxMutex::areFree() {
  const std::unique_lock<std::mutex> lock(list_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool areAll = true;
  for (UcxMutex* each = first_; each != nullptr; each = each->next_) {
    if (each->wasFree_ || each->process_ != getpid()) continue;
    // A thread that has the mutex and ends the process finds it free.
    each->wasFree_ = each->try_lock();
    if (each->wasFree_) each->unlock();
    areAll &= each->wasFree_;
  }
  return areAll;
}

void UcxMutex::end() {
  const int64_t start = clockNs();
  ended_.store(true);
  while (!areFree() && clockNs() - start < kEndNs) usleep(100);
}

}  // namespace windlass

// The dynamic linker calls it before the destructors of the libraries that this one needs: UCX's.
// Handlers of exit() and destructors of static objects have run by then, and may still use wires.
__attribute__((destructor)) static void endUcxCalls() { windlass::UcxMutex::end(); }
