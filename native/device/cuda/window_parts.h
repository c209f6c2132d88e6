// SPDX-License-Identifier: Apache-2.0
// GPU memory for the parts of a window. Each process reserves one range of addresses. Each rank
// maps memory of its own GPU there, and the first rank of the process maps that of other processes.
// All ranks of a process use the same addresses, on host and GPU.
#pragma once

#include <vector>

#include "native/device/cuda/parts.h"
#include "native/device/cuda/reach.h"
#include "native/memory/device.h"

namespace windlass::cuda {

class WindowParts final : public DeviceParts {
 public:
  // Same as reserveParts().
  static Code reserve(const std::vector<uint32_t>& devices, uint32_t otherProcesses, uint64_t bytes,
                      std::unique_ptr<DeviceParts>* parts, wl_error_t* error);
  WindowParts(const WindowParts&) = delete;
  WindowParts& operator=(const WindowParts&) = delete;
  ~WindowParts() override { close(); }
  // Releases everything. Returns the first failure, or the last result.
  Called close();

  void* base() const override { return reinterpret_cast<void*>(address_); }
  uint64_t stride() const override { return stride_; }
  Offer offerOf(uint32_t rank) const override {
    return {own_[rank].offerName(), stride_, devices_[rank]};
  }

  Code make(RankDevice& device, uint32_t rank, wl_error_t* error) override;
  Code ask(uint32_t rank, const std::vector<Offer>& offers, Liveness& liveness,
           wl_error_t* error) override;
  Code share(RankDevice& device, uint32_t rank, Liveness& liveness, wl_error_t* error) override;
  // Tests that copies of `rank` arrive in each part on another GPU or in another process. Then
  // zeroes what it wrote.
  Code tryPeers(RankDevice& device, uint32_t rank, wl_error_t* error) const override;
  // Refuses adds of `rank`'s GPU to the part of `peer` that are not atomic with those of the peer's
  // own GPU.
  Code checkAdds(RankDevice& device, uint32_t rank, uint32_t peer,
                 wl_error_t* error) const override;

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
  CuAddress part(uint32_t rank) const { return address_ + rank * stride_; }

  const Cuda& cuda_;
  const uint32_t otherProcesses_;
  const std::vector<uint32_t> devices_;
  std::vector<uint32_t> theirDevices_;  // as each rank's process counts devices
  std::vector<OwnPart> own_;
  std::vector<PeerPart> peers_;
  CuAddress address_ = 0;
  uint64_t stride_ = 0;
};

}  // namespace windlass::cuda
