// SPDX-License-Identifier: Apache-2.0
// A rank's own part of a window: memory of its GPU, which other processes take through a socket.
#pragma once

#include "native/device/cuda/copies.h"
#include "native/device/cuda/mapping.h"
#include "native/memory/file_offer.h"

namespace windlass::cuda {

// Who shall reach a part.
enum class Reach { kThisProcess, kAllProcesses };

class OwnPart {
 public:
  // What parts on that device are whole multiples of, of what `cuMemGetAllocationGranularity` says.
  static CuResult pageOf(const Cuda& cuda, CuDevice device, Reach reach, size_t* page);

  // `bytes` in whole pages, mapped as Mapping::make() has it, and zeroed. A failure leaves what
  // close() gives back.
  Code make(const Gpu& gpu, Copies& copies, Reach reach, CuAddress at, uint64_t bytes,
            const std::vector<uint32_t>& devices, wl_error_t* error);
  CuAddress address() const { return mapping_.address(); }
  // Has it ready for other processes, which learn the name of the offer; gives it to so many.
  // WL_UNSUPPORTED: the driver says that it can't leave its process.
  Code offer(const Gpu& gpu, wl_error_t* error);
  FileOfferName offerName() const { return offer_.name(); }
  Code give(uint32_t takers, Liveness& liveness, wl_error_t* error);
  // Whoever shall have it has mapped it, and a mapping keeps it.
  Code release(const Gpu& gpu, wl_error_t* error);
  // Takes no context.
  void close(const Cuda& cuda, Undone* undone);

 private:
  CuPhysical physical_ = 0;
  bool hasPhysical_ = false;
  Mapping mapping_;
  OpenFile file_;  // that it offers
  FileOffer offer_;
};

}  // namespace windlass::cuda
