// SPDX-License-Identifier: Apache-2.0
// While a thread of ours is made: signals of the host program, a JVM's among them, go to its own
// threads. Those of a fault go to the thread that makes it: a JVM writes down where that was, and
// blocked they would end the process without a word.
#pragma once

#include <pthread.h>

#include <csignal>

namespace windlass {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace windlass
