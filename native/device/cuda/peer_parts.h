// SPDX-License-Identifier: Apache-2.0
// Parts of ranks of other processes, mapped once in this process. If a kernel accessed memory at
// two addresses, it would need fences that kernels don't have.
#pragma once

#include "native/device/cuda/mapping.h"
#include "native/memory/device.h"
#include "native/memory/file_offer.h"

namespace windlass::cuda {

class PeerPart {
 public:
  // ask() requests that rank's part, and map() maps it like Mapping::make(). WL_PEER_LOST: see
  // FileRequest. After a failure, close() releases the rest.
  Code ask(uint32_t rank, const FileOfferName& of, Liveness& liveness, wl_error_t* error) {
    return request_.ask(of, rank, liveness, error);
  }
  Code map(const Gpu& gpu, CuAddress at, uint64_t bytes, const std::vector<uint32_t>& devices,
           Liveness& liveness, wl_error_t* error);
  CuAddress address() const { return mapping_.address(); }
  // Needs no current context.
  void close(const Cuda& cuda, Undone* undone) { mapping_.close(cuda, undone); }

 private:
  FileRequest request_;
  Mapping mapping_;
};

class PeerParts {
 public:
  // Creates the parts for the ranks of this process. The calling rank holds them. `devices`:
  // devices of this process whose kernels reach the parts. Throws std::bad_alloc.
  static PeerParts* make(const Gpu& gpu, std::vector<uint32_t> devices, uint32_t ranks,
                         uint64_t bytes);
  uint64_t name() const { return name_; }
  static PeerParts* hold(uint64_t name);
  // The last rank to leave unmaps the parts, even after failures, and returns the first failure. No
  // kernel of this process may access them.
  Code leave(wl_error_t* error);

  Code ask(uint32_t rank, const FileOfferName& of, Liveness& liveness, wl_error_t* error) {
    return parts_[rank].ask(rank, of, liveness, error);
  }
  Code map(uint32_t rank, Liveness& liveness, wl_error_t* error) {
    return parts_[rank].map(gpu_, 0, bytes_, devices_, liveness, error);
  }
  CuAddress part(uint32_t rank) const { return parts_[rank].address(); }

 private:
  PeerParts(const Gpu& gpu, std::vector<uint32_t> devices, uint32_t ranks, uint64_t bytes)
      : gpu_(gpu), devices_(std::move(devices)), bytes_(bytes), parts_(ranks) {}

  const Gpu& gpu_;
  const std::vector<uint32_t> devices_;
  const uint64_t bytes_;  // size of each part
  std::vector<PeerPart> parts_;
  uint64_t name_ = 0;
};

}  // namespace windlass::cuda
