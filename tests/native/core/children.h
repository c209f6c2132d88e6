// SPDX-License-Identifier: Apache-2.0
// Processes that tests start, and hold on the way to their end.
#pragma once

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "windlass/windlass.h"

namespace windlass_test {

// A process that waits, in its first thread or in another, until it is killed.
class Waiting {
 public:
  explicit Waiting(bool inFirst) {
    int named[2] = {};
    if (pipe(named) != 0) std::abort();
    pid = fork();
    if (pid == 0) {
      wl_process_t own = {};
      own.struct_size = sizeof own;
      wl_process_self(&own, nullptr);
      if (!inFirst) std::thread([] { pause(); }).detach();
      if (write(named[1], &own, sizeof own) != sizeof own) _exit(1);
      if (!inFirst) syscall(SYS_exit, 0);
      pause();
      _exit(0);
    }
    if (read(named[0], &process, sizeof process) != sizeof process) std::abort();
    close(named[0]);
    close(named[1]);
  }
  ~Waiting() { end(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void end() {
    if (pid == 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }

  pid_t pid;
  wl_process_t process = {};
};

// Ends a child of this process as the system does where it is short of memory: what it has goes at
// once, and the child once it is let go. False where this process can't.
inline bool holdWithoutMemory(pid_t child) {
  if (ptrace(PTRACE_SEIZE, child, nullptr, PTRACE_O_TRACEEXIT) != 0) return false;
  kill(child, SIGKILL);
  int status = 0;
  if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) return false;
  constexpr long kReleaseMemory = 448;  // process_mrelease, of Linux 5.15
  const auto file = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  const bool isReleased = file >= 0 && syscall(kReleaseMemory, file, 0) == 0;
  close(file);
  return isReleased;
}
inline void letGo(pid_t child) {
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
}

// Skips what the system can't do.
#define NEEDS_HOLDING                                                              \
  {                                                                                \
    const Waiting child(true);                                                     \
    const bool isHeld = holdWithoutMemory(child.pid);                              \
    letGo(child.pid);                                                              \
    if (!isHeld) GTEST_SKIP() << "this process can't take the memory of a child"; \
  }

}  // namespace windlass_test
