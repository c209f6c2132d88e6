// SPDX-License-Identifier: Apache-2.0
// The parts of a window that ranks of other processes have, mapped once in this one: memory that a
// kernel touched at two addresses would take fences that kernels don't have.
#pragma once

#include "native/window/cuda/gpu.h"
#include "native/window/file_offer.h"

namespace windlass::cuda {

class PeerParts {
 public:
  // For the ranks of this process, of which this one, whose thread this is, holds it from now on.
  // `devices`: those of this process whose kernels reach the parts. Throws std::bad_alloc.
  static PeerParts* make(const Gpu& gpu, std::vector<uint32_t> devices, uint32_t ranks,
                         uint64_t bytes);
  uint64_t name() const { return name_; }
  static PeerParts* hold(uint64_t name);
  // The last one to leave unmaps them, whatever fails, and tells the first failure. No kernel of
  // this process runs there.
  Code leave(wl_error_t* error);

  // Asks that rank for its part, then maps what comes of it. WL_PEER_LOST as FileRequest has it.
  Code ask(uint32_t rank, const FileOfferName& of, AllRanks& exchange, wl_error_t* error) {
    return parts_[rank].request.ask(of, rank, exchange, error);
  }
  Code map(uint32_t rank, AllRanks& exchange, wl_error_t* error);
  CuAddress part(uint32_t rank) const { return parts_[rank].address; }

 private:
  struct Part {
    FileRequest request;
    CuAddress address = 0;
    bool isReserved = false;
    bool isMapped = false;
  };

  PeerParts(const Gpu& gpu, std::vector<uint32_t> devices, uint32_t ranks, uint64_t bytes)
      : gpu_(gpu), devices_(std::move(devices)), bytes_(bytes), parts_(ranks) {}
  Code mapAt(Part& part, CuPhysical physical, wl_error_t* error);

  const Gpu& gpu_;
  const std::vector<uint32_t> devices_;
  const uint64_t bytes_;  // of each
  std::vector<Part> parts_;
  uint64_t name_ = 0;
};

// Has kernels on those GPUs read and write what is mapped there.
Code grantAccess(const Gpu& gpu, CuAddress address, uint64_t bytes,
                 const std::vector<uint32_t>& devices, wl_error_t* error);

}  // namespace windlass::cuda
