// SPDX-License-Identifier: Apache-2.0
#include "native/base/cpu.h"
#include "native/core/workers.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <exception>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"

namespace windlass {
namespace {

// The time of two wakes across cores.
constexpr int64_t kIdleSpinNs = 50'000;
constexpr int kEmptySteps = 64;

void futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

Workers::~Workers() {
  ending_.store(true, std::memory_order_seq_cst);
  opened_.fetch_add(1, std::memory_order_seq_cst);
  futex(&opened_, FUTEX_WAKE_PRIVATE, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

void Workers::start() {
  const MakesThreads making;
  try {
    threads_.reserve(count_);
    while (threads_.size() < count_) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // The system lacks threads or memory. The rank's own thread and the started threads do the
    // work.
  }
}

void Workers::open(Step step, void* context) {
  if (threads_.empty()) start();
  step_ = step;
  context_ = context;
  uint32_t job = opened_.load(std::memory_order_relaxed) + 1;
  if (job == 0) job = 1;
  job_.store(job, std::memory_order_seq_cst);
  opened_.exchange(job, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) futex(&opened_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Workers::close() {
  job_.exchange(0, std::memory_order_seq_cst);
  // An item takes microseconds. The yields give a core back to a worker that lost it.
  for (int look = 0; inside_.load(std::memory_order_seq_cst) != 0; ++look)
    relax(look >= kEmptySteps);
}

void Workers::work() {
  uint32_t seen = 0;
  while (!ending_.load(std::memory_order_seq_cst)) {
    const int64_t idleSince = clockNs();
    while (opened_.load(std::memory_order_acquire) == seen) {
      for (int i = 0; i < kLooksBetweenClocks; ++i) {
        if (opened_.load(std::memory_order_relaxed) != seen) break;
        cpuPause();
      }
      if (clockNs() - idleSince < kIdleSpinNs) continue;
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      futex(&opened_, FUTEX_WAIT_PRIVATE, seen);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = opened_.load(std::memory_order_acquire);
    inside_.fetch_add(1, std::memory_order_seq_cst);
    for (int empty = 0; job_.load(std::memory_order_seq_cst) == seen;) {
      if (step_(context_)) {
        empty = 0;
      } else {
        relax(++empty >= kEmptySteps);
      }
    }
    inside_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace windlass
