// SPDX-License-Identifier: Apache-2.0
// Whether there is memory at an address, asked without a load that could crash.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace windlass {

// Whether a load of the byte would find it. The kernel copies the eight aligned bytes that hold it,
// which lie in one page, as a load of this process's would: it faults them in, whatever they are
// mapped from. What they would be for, a mask of signals, is refused behind that, since there is no
// such change of one. Where the system forbids the call, nothing is known against the byte.
inline bool isReadable(const void* byte) {
  constexpr int kNoChange = -1;
  constexpr uintptr_t kMaskBytes = 8;
  const uintptr_t mask = reinterpret_cast<uintptr_t>(byte) & ~(kMaskBytes - 1);
  // No mask, to the call.
  if (mask == 0) return false;
  const int before = errno;
  const bool is =
      syscall(SYS_rt_sigprocmask, kNoChange, mask, nullptr, kMaskBytes) == 0 || errno != EFAULT;
  errno = before;
  return is;
}

}  // namespace windlass
