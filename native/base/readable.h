// SPDX-License-Identifier: Apache-2.0
// Checks whether an address is mapped, without a load that could crash.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace windlass {

// True if a load of the byte would succeed. The kernel copies the eight aligned bytes that hold it,
// which lie in one page, and faults them in as a load would. It then rejects the call, since
// kNoChange is an invalid way to change a signal mask. If the system forbids the call, the byte
// counts as readable.
inline bool isReadable(const void* byte) {
  constexpr int kNoChange = -1;
  constexpr uintptr_t kMaskBytes = 8;
  const uintptr_t mask = reinterpret_cast<uintptr_t>(byte) & ~(kMaskBytes - 1);
  // The system call treats a null mask as absent.
  if (mask == 0) return false;
  const int before = errno;
  const bool is =
      syscall(SYS_rt_sigprocmask, kNoChange, mask, nullptr, kMaskBytes) == 0 || errno != EFAULT;
  errno = before;
  return is;
}

}  // namespace windlass
