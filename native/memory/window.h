// SPDX-License-Identifier: Apache-2.0
// A window as one process reaches it: one segment per rank, with equal sizes and equal distances.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "native/memory/device.h"
#include "native/memory/memory.h"

namespace windlass {

class Window {
 public:
  // Maps a window whose ranks all live in this process: one anonymous mapping with zeroed,
  // page-aligned segments. Returns WL_RESOURCE if a large window exceeds the free memory.
  static Code map(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error);
  // Like map(), but pages have no memory until each rank's MemoryPool reserves them.
  static Code mapSparse(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error);
  // Computes the distance between segments. `what` names the object in errors. Returns WL_RESOURCE
  // if `ranks` segments are more than a process can address.
  static Code strideOf(const char* what, uint64_t bytes, uint32_t ranks, uint64_t* stride,
                       wl_error_t* error);
  // Uses memory that processes map, with segments `stride` apart. It must outlive the window.
  Window(void* base, uint64_t bytes, uint64_t stride) : Window(base, bytes, stride, 0) {}
  // Uses parts on devices. `name` identifies the window within its communicator, in every process.
  Window(std::unique_ptr<DeviceParts> parts, uint64_t bytes, uint64_t name)
      : Window(parts->base(), bytes, parts->stride()) {
    parts_ = std::move(parts);
    name_ = name;
  }
  ~Window();

  uint64_t bytes() const { return bytes_; }
  // nullptr if the window is in host memory.
  DeviceParts* parts() const { return parts_.get(); }
  uint64_t name() const { return name_; }  // of a window on devices
  // Bytes from one segment to the next.
  uint64_t stride() const { return stride_; }
  void* address(uint32_t rank) const { return static_cast<char*>(base_) + rank * stride_; }
  // Address of `bytes` bytes at `offset` of the rank's segment; nullptr if they reach outside it.
  void* resolve(uint32_t rank, uint64_t offset, uint64_t bytes) const {
    if (offset > bytes_ || bytes > bytes_ - offset) return nullptr;
    return static_cast<char*>(address(rank)) + offset;
  }

 private:
  static Code mapBy(int kind, const char* what, uint64_t bytes, uint32_t ranks, Window** window,
                    wl_error_t* error);
  Window(void* base, uint64_t bytes, uint64_t stride, uint64_t mapped)
      : base_(base), bytes_(bytes), stride_(stride), mapped_(mapped) {}

  void* base_;
  uint64_t bytes_;
  uint64_t stride_;
  uint64_t mapped_;  // 0 if another object owns the memory
  std::unique_ptr<DeviceParts> parts_;
  uint64_t name_ = 0;
};

}  // namespace windlass
