// SPDX-License-Identifier: Apache-2.0
#include "native/core/adjustment.h"

#include "native/base/makes_threads.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace windlass {
namespace {

constexpr uint64_t kSliceNs = 100'000;  // the shortest that the kernel grants
constexpr uint64_t kResetOnFork = 1;    // SCHED_FLAG_RESET_ON_FORK
constexpr int64_t kTryAgainNs = 100'000'000;

thread_local bool adopted = false;

// For sched_setattr(2). <linux/sched/types.h> and <sched.h> cannot be included together.
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

// Time slices of the calling thread, as this library has changed them.
struct Slice {
  bool isShort;
  bool isRefused;
  int64_t untilNs;
  uint64_t beforeNs;
};
thread_local Slice slice = {};

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

void placeThread(uint32_t place, bool stays) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) == 0) return;  // the last core of the mask goes offline now
  uint32_t before = place % static_cast<uint32_t>(CPU_COUNT(&allowed));
  uint32_t core = 0;
  while (!CPU_ISSET(core, &allowed) || before-- > 0) ++core;
  if (!stays) return moveToCore(core, allowed);
  Pinned own = {{}, allowed};
  CPU_SET(core, &own.core);
  if (sched_setaffinity(0, sizeof own.core, &own.core) == 0) pinned = own;
}

void takeShortSlices(int64_t untilNs) {
  slice.untilNs = untilNs;
  if (slice.isShort || slice.isRefused) return;
  SchedulingAttributes attributes = {};
  slice.isRefused = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
                    attributes.policy != SCHED_OTHER;
  if (slice.isRefused) return;
  slice.beforeNs = attributes.runtime;
  attributes.runtime = kSliceNs;
  attributes.flags |= kResetOnFork;
  slice.isShort = syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

void returnShortSlices(int64_t nowNs) {
  if (!slice.isShort || nowNs < slice.untilNs) return;
  SchedulingAttributes attributes = {};  // sched_getattr() includes changes by other code
  slice.isShort = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
                  attributes.policy == SCHED_OTHER && attributes.runtime == kSliceNs;
  if (!slice.isShort) return;  // other code has changed it
  attributes.runtime = slice.beforeNs;
  attributes.flags |= kResetOnFork;  // only a privileged thread could clear it
  slice.isShort = syscall(SYS_sched_setattr, 0, &attributes, 0) != 0;
  slice.untilNs = nowNs + kTryAgainNs;
}

}  // namespace windlass
