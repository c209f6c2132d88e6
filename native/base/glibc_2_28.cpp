// SPDX-License-Identifier: Apache-2.0
// What glibc exports since a version after 2.28. cmake/glibc_2_28.cmake links this file into each
// shared library, whose own references it takes: the names are hidden. It declares what it defines
// itself, since the headers declare other forms.
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

extern "C" {

// False, so that libstdc++ counts its references atomically always.
char __libc_single_threaded = 0;

// The kernel's structure is that of glibc on 64-bit processors.
int stat(const char* path, void* status) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, 0));
}

int lstat(const char* path, void* status) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW));
}

int fstat(int descriptor, void* status) {
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

int pthread_cond_timedwait(void* condition, void* mutex, const timespec* deadline);

// Waits by the wall clock for what is left by `clock`. If the wall clock was set forward meanwhile,
// it wakes early, as a condition may, and never reports a deadline that has not passed.
int pthread_cond_clockwait(void* condition, void* mutex, clockid_t clock,
                           const timespec* deadline) {
  constexpr long kNanos = 1'000'000'000;
  timespec now{};
  timespec wall{};
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0) {
    return EINVAL;
  }
  wall.tv_sec += deadline->tv_sec - now.tv_sec;
  wall.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += kNanos;
    wall.tv_sec -= 1;
  } else if (wall.tv_nsec >= kNanos) {
    wall.tv_nsec -= kNanos;
    wall.tv_sec += 1;
  }
  if (wall.tv_sec < 0) {
    wall = {};
  }
  int result = pthread_cond_timedwait(condition, mutex, &wall);
  if (result == ETIMEDOUT && clock_gettime(clock, &now) == 0) {
    const bool isEarly = now.tv_sec == deadline->tv_sec ? now.tv_nsec < deadline->tv_nsec
                                                        : now.tv_sec < deadline->tv_sec;
    if (isEarly) return 0;
  }
  return result;
}
}
