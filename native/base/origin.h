// SPDX-License-Identifier: Apache-2.0
// Which process made something: a process that was forked from it has all of its memory, and of
// its threads one alone. Cheap to ask, since only a fork changes the answer.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace windlass {

// How many forks lie between the process that loaded the library and this one.
extern std::atomic<uint32_t> forksBefore;

class Origin {
 public:
  // Whether this process made it.
  bool isHere() const { return forks_ == forksBefore.load(std::memory_order_relaxed); }
  pid_t process() const { return process_; }

 private:
  const uint32_t forks_ = forksBefore.load(std::memory_order_relaxed);
  const pid_t process_ = getpid();
};

}  // namespace windlass
