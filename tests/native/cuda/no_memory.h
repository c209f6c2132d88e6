// SPDX-License-Identifier: Apache-2.0
// Addresses that no load reaches, as of memory that a device's owner has given back.
#pragma once

#include <sys/mman.h>

#include <stdexcept>

namespace windlass_test {

class NoMemory {
 public:
  NoMemory() {
    // One page with memory, before pages without.
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_, kPage, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("no addresses");
  }
  ~NoMemory() { munmap(memory_, kBytes); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

  void* begin() const { return memory_ + kPage; }
  // As many bytes of the host's memory, which end there.
  void* before(size_t bytes) const { return memory_ + kPage - bytes; }

 private:
  static constexpr size_t kPage = 65'536;
  static constexpr size_t kBytes = 4 * kPage;
  unsigned char* memory_;
};

}  // namespace windlass_test
