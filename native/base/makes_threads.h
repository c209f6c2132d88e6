// SPDX-License-Identifier: Apache-2.0
// While a thread of ours is made. Signals of the host program, a JVM's among them, go to its own
// threads. Those of a fault go to the thread that makes it: a JVM writes down where that was, and
// blocked they would end the process without a word. Where the caller is pinned, the new thread may
// use all cores that the caller might use before, of those that the process may use now: its first
// thread, unless that is the caller.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace windlass {

// The calling thread's one core, and what it might use before; empty where it is not pinned.
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
    // One that somebody else has given it, or all of the process's, since stands.
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
