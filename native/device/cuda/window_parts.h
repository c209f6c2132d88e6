// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs for the parts of a window: one range of addresses in each process, in which each
// rank maps physical memory of its own GPU, and the first one of the process that of other
// processes. Ranks of a process reach it by the same addresses, as hosts and GPUs alike count them.
#pragma once

#include <vector>

#include "native/device/cuda/own_part.h"
#include "native/device/cuda/peer_parts.h"
#include "native/device/cuda/reach.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class WindowParts final : public DeviceParts {
 public:
  // As reserveParts().
  static Code reserve(const std::vector<uint32_t>& devices, uint32_t otherProcesses, uint64_t bytes,
                      std::unique_ptr<DeviceParts>* parts, wl_error_t* error);
  WindowParts(const WindowParts&) = delete;
  WindowParts& operator=(const WindowParts&) = delete;
  ~WindowParts() override;

  void* base() const override { return reinterpret_cast<void*>(address_); }
  uint64_t stride() const override { return stride_; }
  Offer offerOf(uint32_t rank) const override {
    return {own_[rank].offerName(), stride_, devices_[rank]};
  }

  // Makes that of `rank`, whose GPU this is; ranks do so side by side.
  Code make(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error);
  // As RankDevice::askForParts() and shareParts().
  Code ask(uint32_t rank, const std::vector<Offer>& offers, Liveness& liveness, wl_error_t* error);
  Code share(const Gpu& gpu, uint32_t rank, Liveness& liveness, wl_error_t* error);
  // Whether what `rank` copies to the part of each rank on another GPU, or in another process,
  // comes there. Then it zeroes what it wrote.
  Code tryPeers(const Gpu& gpu, Copies& copies, uint32_t rank, wl_error_t* error) const;
  // Whether kernels of `rank`'s GPU add to the part of `peer` as that one's own do.
  Code checkAdds(const Gpu& gpu, uint32_t rank, uint32_t peer, wl_error_t* error) const;

 private:
  WindowParts(const Cuda& cuda, const std::vector<uint32_t>& devices, uint32_t otherProcesses)
      : cuda_(cuda),
        otherProcesses_(otherProcesses),
        devices_(devices),
        theirDevices_(devices),
        own_(devices.size()),
        peers_(otherProcesses == 0 ? 0 : devices.size()) {}
  bool isHere(uint32_t rank) const { return devices_[rank] != kNobody; }
  bool isFirstHere(uint32_t rank) const;
  Reach reach() const { return otherProcesses_ == 0 ? Reach::kThisProcess : Reach::kAllProcesses; }
  // Each GPU of this process's ranks once, `first` first.
  std::vector<uint32_t> allDevices(uint32_t first) const;
  CuAddress part(uint32_t rank) const { return address_ + rank * stride_; }

  const Cuda& cuda_;
  const uint32_t otherProcesses_;
  const std::vector<uint32_t> devices_;
  std::vector<uint32_t> theirDevices_;  // as each rank's process counts them
  std::vector<OwnPart> own_;
  std::vector<PeerPart> peers_;
  CuAddress address_ = 0;
  uint64_t stride_ = 0;
};

}  // namespace windlass::cuda
