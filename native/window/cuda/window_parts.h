// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs for the parts of a window: one range of addresses in the process, in which each
// rank maps physical memory of its own GPU. Peers reach it by the same addresses, as hosts and GPUs
// alike count them.
#pragma once

#include <vector>

#include "native/window/cuda/own_part.h"
#include "native/window/cuda/reach.h"
#include "native/window/device.h"

namespace windlass::cuda {

class WindowParts final : public DeviceParts {
 public:
  // `devices`: of each rank. Throws std::bad_alloc.
  static Code reserve(const std::vector<uint32_t>& devices, uint64_t bytes,
                      std::unique_ptr<DeviceParts>* parts, wl_error_t* error);
  WindowParts(const WindowParts&) = delete;
  WindowParts& operator=(const WindowParts&) = delete;
  ~WindowParts() override;

  void* base() const override { return reinterpret_cast<void*>(address_); }
  uint64_t stride() const override { return stride_; }

  // Makes that of `rank`, whose GPU this is; ranks do so side by side.
  Code make(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error);
  // Whether what `rank` copies to the part of each rank on another GPU comes there. Then it zeroes
  // what it wrote.
  Code tryPeers(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) const;
  // Whether kernels of `rank`'s GPU add to the part of `peer` as that one's own do.
  Code checkAdds(const Gpu& gpu, uint32_t rank, uint32_t peer, wl_error_t* error) const;

 private:
  WindowParts(const Cuda& cuda, const std::vector<uint32_t>& devices)
      : cuda_(cuda), devices_(devices), own_(devices.size()) {}
  CuAddress part(uint32_t rank) const { return address_ + rank * stride_; }

  const Cuda& cuda_;
  const std::vector<uint32_t> devices_;
  std::vector<OwnPart> own_;
  CuAddress address_ = 0;
  uint64_t stride_ = 0;
};

}  // namespace windlass::cuda
