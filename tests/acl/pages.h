// SPDX-License-Identifier: Apache-2.0
// Memory of the stand-ins' devices.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stand_in {

// Whether pages of a shared file can be freed by their address. An emulator of another processor
// may say that it has done so and do nothing.
inline bool freesPages(size_t page) {
  void* const memory =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* const first = static_cast<volatile unsigned char*>(memory);
  *first = 1;
  const bool frees = madvise(memory, page, MADV_REMOVE) == 0 && *first == 0;
  munmap(memory, page);
  return frees;
}

// Sets bytes like memset(). Whole pages of a shared file are cleared by freeing them, which is
// faster than writing zeros. ThreadSanitizer sees only writes, so there they are written.
inline void setBytes(void* memory, unsigned char value, size_t bytes) {
#if !defined(__SANITIZE_THREAD__)
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  static const bool frees = freesPages(page);
  const bool isWhole = bytes != 0 && (reinterpret_cast<uintptr_t>(memory) | bytes) % page == 0;
  if (frees && value == 0 && isWhole && madvise(memory, bytes, MADV_REMOVE) == 0) return;
#endif
  std::memset(memory, value, bytes);
}

}  // namespace stand_in
