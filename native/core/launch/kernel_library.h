// SPDX-License-Identifier: Apache-2.0
// Libraries of kernels that this process has loaded. Each table is checked against the rules of
// windlass/kernel_table.h before any other use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/base/shared_library.h"
#include "windlass/kernel_table.h"

namespace windlass {

// One kernel of a library.
struct LoadedKernel {
  const KernelEntry* entry;
  const void* image;  // the library's image for GPUs; nullptr: it runs on the host
  uint32_t index;     // number of the kernel in its library
  // Hash of the library's file and the kernel's name. Ranks compare it, and messages use it to find
  // the kernel.
  uint32_t id;
  std::string signature;  // "shift(f32 in, distributed written f32 out, scalar i32 steps)"
};

class KernelLibrary {
 public:
  // Loads the library in the file at `path`; `contents` is the fingerprint of the file. It stays
  // loaded for the life of the process. `target` is this process's own target, which the library
  // must match. Throws std::bad_alloc.
  static Code load(const std::string& path, uint64_t contents, const char* target,
                   const KernelLibrary** library, wl_error_t* error);

  uint32_t count() const { return static_cast<uint32_t>(kernels_.size()); }
  const LoadedKernel& kernel(uint32_t index) const { return kernels_[index]; }

 private:
  KernelLibrary() = default;

  const KernelTable* table_ = nullptr;
  uint64_t contents_ = 0;
  std::vector<LoadedKernel> kernels_;
};

// nullptr: this process has loaded no kernel with this id. The kernel lives as long as the process.
const LoadedKernel* loadedKernel(uint32_t id);

}  // namespace windlass
