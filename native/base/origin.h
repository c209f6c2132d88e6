// SPDX-License-Identifier: Apache-2.0
// Records which process created an object. A forked process inherits all memory but only one
// thread. The check is cheap, since only a fork changes its result.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace windlass {

// Number of forks between the process that loaded the library and this one.
inline std::atomic<uint32_t> forksBefore{0};
// Counts forks. Fails only if memory runs out while the library is loaded.
inline const int countsForks = pthread_atfork(
    nullptr, nullptr, [] { forksBefore.fetch_add(1, std::memory_order_relaxed); });

class Origin {
 public:
  // True if this process created the object.
  bool isHere() const { return forks_ == forksBefore.load(std::memory_order_relaxed); }
  pid_t process() const { return process_; }

 private:
  const uint32_t forks_ = forksBefore.load(std::memory_order_relaxed);
  const pid_t process_ = getpid();
};

}  // namespace windlass
