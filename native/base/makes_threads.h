// SPDX-License-Identifier: Apache-2.0
// Scope in which a thread of this library is created. The new thread blocks all signals except
// those of faults, so that signals for the host program, such as a JVM, reach its own threads. A
// blocked fault signal would end the process without a report; a JVM records where the fault
// happened. If the caller is pinned, the new thread may use every core that the caller could use
// before. Unless the caller is the first thread, the cores are limited to those that the first
// thread may use now.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace windlass {

// The calling thread's core and its earlier affinity; empty if it is not pinned.
struct Pinned {
  cpu_set_t core = {};
  cpu_set_t before = {};
};
inline thread_local Pinned pinned;

class MakesThreads {
 public:
  MakesThreads() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    // An affinity that other code has set since, for this thread or the process, stays in effect.
    cpu_set_t now;
    cpu_set_t wider;
    isFreed_ = CPU_COUNT(&pinned.core) > 0 && sched_getaffinity(0, sizeof now, &now) == 0 &&
               CPU_EQUAL(&now, &pinned.core) && sched_getaffinity(getpid(), sizeof now, &now) == 0;
    if (!isFreed_) return;
    wider = pinned.before;
    if (syscall(SYS_gettid) != getpid()) CPU_AND(&wider, &wider, &now);
    isFreed_ = CPU_COUNT(&wider) > 0 && sched_setaffinity(0, sizeof wider, &wider) == 0;
  }
  ~MakesThreads() {
    if (isFreed_) sched_setaffinity(0, sizeof pinned.core, &pinned.core);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  MakesThreads(const MakesThreads&) = delete;
  MakesThreads& operator=(const MakesThreads&) = delete;

 private:
  sigset_t before_;
  bool isFreed_;
};

}  // namespace windlass
