// SPDX-License-Identifier: Apache-2.0
// Libraries of kernels that this process has loaded: each table held against the rules of
// windlass/kernel_table.h before anything else looks at it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/base/shared_library.h"
#include "windlass/kernel_table.h"

namespace windlass {

// One kernel of one.
struct LoadedKernel {
  const KernelEntry* entry;
  const void* image;  // the library's for GPUs; nullptr: it runs on the host
  uint32_t index;     // among the library's
  // Of the library's file and the kernel's name: what ranks compare, and messages find it by.
  uint32_t id;
  std::string signature;  // "shift(f32 in, distributed written f32 out, scalar i32 steps)"
};

class KernelLibrary {
 public:
  // The library in the file at `path`, whose contents have that fingerprint; it stays loaded as
  // long as the process lives. `target`: that it has to be for, this process's own. Throws
  // std::bad_alloc.
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

// nullptr: this process has loaded none of that number. It lasts as long as the process.
const LoadedKernel* loadedKernel(uint32_t id);

}  // namespace windlass
