// SPDX-License-Identifier: Apache-2.0
// A window as one process reaches it: a segment for each rank, equally large and equally far apart.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "native/memory/device.h"
#include "native/memory/memory.h"

namespace windlass {

class Window {
 public:
  // Whose ranks all live in this process: one anonymous mapping, every segment page-aligned and
  // zeroed. WL_RESOURCE where a large one is more than what is free.
  static Code map(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error);
  // The same whose pages have no memory until a MemoryPool of each rank reserves them.
  static Code mapSparse(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error);
  // From one segment of a `what` to the next; WL_RESOURCE where `ranks` of them are more than a
  // process can address.
  static Code strideOf(const char* what, uint64_t bytes, uint32_t ranks, uint64_t* stride,
                       wl_error_t* error);
  // Over memory that processes map, and that lasts as long as the window: segments `stride` apart.
  Window(void* base, uint64_t bytes, uint64_t stride) : Window(base, bytes, stride, 0) {}
  // Over parts that devices make; `name` tells it from others of its communicator, in every process
  // alike.
  Window(std::unique_ptr<DeviceParts> parts, uint64_t bytes, uint64_t name)
      : Window(parts->base(), bytes, parts->stride()) {
    parts_ = std::move(parts);
    name_ = name;
  }
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  uint64_t bytes() const { return bytes_; }
  // nullptr: it lies in the host's memory.
  DeviceParts* parts() const { return parts_.get(); }
  uint64_t name() const { return name_; }  // of one on devices
  // From one segment to the next.
  uint64_t stride() const { return stride_; }
  void* address(uint32_t rank) const { return static_cast<char*>(base_) + rank * stride_; }
  // `bytes` from `offset` of the rank's segment; nullptr where they reach outside it.
  void* resolve(uint32_t rank, uint64_t offset, uint64_t bytes) const {
    if (offset > bytes_ || bytes > bytes_ - offset) return nullptr;
    return static_cast<char*>(address(rank)) + offset;
  }

 private:
  static Code mapBy(void* (*map)(uint64_t), const char* what, uint64_t bytes, uint32_t ranks,
                    Window** window, wl_error_t* error);
  Window(void* base, uint64_t bytes, uint64_t stride, uint64_t mapped)
      : base_(base), bytes_(bytes), stride_(stride), mapped_(mapped) {}

  void* base_;
  uint64_t bytes_;
  uint64_t stride_;
  uint64_t mapped_;  // 0: the memory is somebody else's
  std::unique_ptr<DeviceParts> parts_;
  uint64_t name_ = 0;
};

}  // namespace windlass
