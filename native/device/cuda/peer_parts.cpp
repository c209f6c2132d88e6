// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/peer_parts.h"

namespace windlass::cuda {

Code PeerPart::map(const Gpu& gpu, CuAddress at, uint64_t bytes,
                   const std::vector<uint32_t>& devices, Liveness& liveness, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  OpenFile file;
  if (Code code = request_.take(liveness, &file, error); code != WL_OK) return code;
  void* const handle = reinterpret_cast<void*>(static_cast<intptr_t>(file.number()));
  CuPhysical physical = 0;
  Code code = gpu.check(cuda.cuMemImportFromShareableHandle(&physical, handle, kHandleFile), error);
  if (code != WL_OK) return code;
  code = mapping_.make(gpu, physical, at, bytes, devices, error);
  // The mapping keeps the memory.
  const Code released = gpu.check(cuda.cuMemRelease(physical), code == WL_OK ? error : nullptr);
  return code != WL_OK ? code : released;
}

}  // namespace windlass::cuda
