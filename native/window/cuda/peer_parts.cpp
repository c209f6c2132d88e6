// SPDX-License-Identifier: Apache-2.0
#include "native/window/cuda/peer_parts.h"

#include <memory>

#include "native/window/cuda/by_name.h"

namespace windlass::cuda {
namespace {

ByName<PeerParts> all;

}  // namespace

Code grantAccess(const Gpu& gpu, CuAddress address, uint64_t bytes,
                 const std::vector<uint32_t>& devices, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  CuAccess accesses[kMostDeviceRanks] = {};
  uint32_t count = 0;
  for (const uint32_t number : devices) {
    CuDevice device = gpu.device();
    if (number != gpu.number()) {
      const Code code =
          gpu.check(cuda.cuDeviceGet(&device, static_cast<int32_t>(number)), "cuDeviceGet", error);
      if (code != WL_OK) return code;
    }
    accesses[count++] = {{kLocationDevice, device}, kAccessReadWrite};
  }
  return gpu.check(cuda.cuMemSetAccess(address, bytes, accesses, count), "cuMemSetAccess", error);
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

Code PeerParts::map(uint32_t rank, AllRanks& exchange, wl_error_t* error) {
  const Cuda& cuda = gpu_.cuda();
  Part& part = parts_[rank];
  OpenFile file;
  if (Code code = part.request.take(exchange, &file, error); code != WL_OK) return code;
  void* const handle = reinterpret_cast<void*>(static_cast<intptr_t>(file.number()));
  CuPhysical physical = 0;
  Code code = gpu_.check(cuda.cuMemImportFromShareableHandle(&physical, handle, kHandleFile),
                         "cuMemImportFromShareableHandle", error);
  if (code != WL_OK) return code;
  code = mapAt(part, physical, error);
  // The mapping keeps it.
  const Code released =
      gpu_.check(cuda.cuMemRelease(physical), "cuMemRelease", code == WL_OK ? error : nullptr);
  return code != WL_OK ? code : released;
}

Code PeerParts::mapAt(Part& part, CuPhysical physical, wl_error_t* error) {
  const Cuda& cuda = gpu_.cuda();
  Code code = gpu_.check(cuda.cuMemAddressReserve(&part.address, bytes_, 0, 0, 0),
                         "cuMemAddressReserve", error);
  part.isReserved = code == WL_OK;
  if (code != WL_OK) return code;
  code = gpu_.check(cuda.cuMemMap(part.address, bytes_, 0, physical, 0), "cuMemMap", error);
  part.isMapped = code == WL_OK;
  return code != WL_OK ? code : grantAccess(gpu_, part.address, bytes_, devices_, error);
}

Code PeerParts::leave(wl_error_t* error) {
  if (!all.leave(name_)) return WL_OK;
  const std::unique_ptr<PeerParts> own(this);
  const Cuda& cuda = gpu_.cuda();
  Code code = WL_OK;
  const auto undo = [&](CuResult result, const char* call) {
    const Code undone = gpu_.check(result, call, code == WL_OK ? error : nullptr);
    if (code == WL_OK) code = undone;
  };
  for (const Part& part : parts_) {
    if (part.isMapped) undo(cuda.cuMemUnmap(part.address, bytes_), "cuMemUnmap");
    if (part.isReserved) undo(cuda.cuMemAddressFree(part.address, bytes_), "cuMemAddressFree");
  }
  return code;
}

}  // namespace windlass::cuda
