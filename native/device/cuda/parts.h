// SPDX-License-Identifier: Apache-2.0
// Parts of a window: a rank's own, which is memory of its GPU, and those of ranks of other
// processes. Processes receive one another's parts through sockets.
#pragma once

#include "native/device/cuda/copies.h"
#include "native/device/cuda/mapping.h"
#include "native/memory/file_offer.h"

namespace windlass::cuda {

// Processes that can access a part.
enum class Reach { kThisProcess, kAllProcesses };

class OwnPart {
 public:
  // Sets *page to the unit in which parts on that device are allocated. Returns the result of
  // cuMemGetAllocationGranularity.
  static Called pageOf(const Cuda& cuda, CuDevice device, Reach reach, size_t* page);

  // Allocates `bytes`, in whole pages, on the GPU of `rank`, maps them like Mapping::make(), and
  // zeroes them. Offers them to other processes if these can access the part. WL_UNSUPPORTED: one
  // of `devices` does not reach the GPU, or the driver says that the part can't leave its process.
  // After a failure, close() releases the rest.
  Code make(uint32_t rank, const Gpu& gpu, Copies& copies, Reach reach, CuAddress at,
            uint64_t bytes, const std::vector<uint32_t>& devices, wl_error_t* error);
  CuAddress address() const { return mapping_.address(); }
  // Name by which other processes ask for the part. give() sends it to `takers` processes.
  FileOfferName offerName() const { return offer_.name(); }
  Code give(uint32_t takers, Liveness& liveness, wl_error_t* error);
  // Needs no current context.
  void close(const Cuda& cuda, Undone* undone);

 private:
  Code offer(const Gpu& gpu, wl_error_t* error);

  CuPhysical physical_ = 0;
  bool hasPhysical_ = false;
  Mapping mapping_;
  OpenFile file_;  // the file that it offers
  FileOffer offer_;
};

// A part of a rank of another process, mapped once in this process. If a kernel accessed memory at
// two addresses, it would need fences that kernels don't have.
struct PeerPart {
  FileRequest request;
  Mapping mapping;

  // Takes the part that `request` asked for, and maps it like Mapping::make(). WL_PEER_LOST: see
  // FileRequest. After a failure, mapping.close() releases the rest.
  Code map(const Gpu& gpu, CuAddress at, uint64_t bytes, const std::vector<uint32_t>& devices,
           Liveness& liveness, wl_error_t* error);
};

}  // namespace windlass::cuda
