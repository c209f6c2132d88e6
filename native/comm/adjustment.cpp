// SPDX-License-Identifier: Apache-2.0
#include "native/comm/adjustment.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace windlass {
namespace {

constexpr uint64_t kSliceNs = 100'000;  // the shortest that the kernel grants
constexpr uint64_t kResetOnFork = 1;      // SCHED_FLAG_RESET_ON_FORK

thread_local bool adopted = false;

// Of sched_setattr(2); <linux/sched/types.h> and <sched.h> don't go together.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;  // the slice of a thread of SCHED_OTHER
  uint64_t deadline;
  uint64_t period;
};

}  // namespace

bool adoptThread() {
  return std::exchange(adopted, true);
}

bool isAdopted() {
  return adopted;
}

void moveToCore(uint32_t core, const cpu_set_t& allowed) {
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  CPU_SET(core, &chosen);
  if (sched_setaffinity(0, sizeof chosen, &chosen) != 0) return;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && !CPU_EQUAL(&now, &chosen)) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
}

void takeShortSlices() {
  static thread_local bool asked = false;
  if (asked) return;
  asked = true;
  SchedulingAttributes attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kSliceNs;
  attributes.flags |= kResetOnFork;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace windlass
