// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/peer_parts.h"

#include <memory>

#include "native/device/cuda/by_name.h"

namespace windlass::cuda {
namespace {

ByName<PeerParts> all;

}  // namespace

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

PeerParts* PeerParts::make(const Gpu& gpu, std::vector<uint32_t> devices, uint32_t ranks,
                           uint64_t bytes) {
  std::unique_ptr<PeerParts> made(new PeerParts(gpu, std::move(devices), ranks, bytes));
  made->name_ = all.add(made.get());
  return made.release();
}

PeerParts* PeerParts::hold(uint64_t name) {
  return all.hold(name);
}

Code PeerParts::leave(wl_error_t* error) {
  if (!all.leave(name_)) return WL_OK;
  const std::unique_ptr<PeerParts> own(this);
  Undone undone;
  for (PeerPart& part : parts_) part.close(gpu_.cuda(), &undone);
  return gpu_.check(undone.first, error);
}

}  // namespace windlass::cuda
