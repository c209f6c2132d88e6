// SPDX-License-Identifier: Apache-2.0
// A part of a rank of another process, mapped once in this process. If a kernel accessed memory at
// two addresses, it would need fences that kernels don't have.
#pragma once

#include "native/device/cuda/mapping.h"
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

}  // namespace windlass::cuda
