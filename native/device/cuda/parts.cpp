// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/parts.h"

#include "native/device/cuda/reach.h"

namespace windlass::cuda {
namespace {

CuPhysicalProperties propertiesOn(CuDevice device, Reach reach) {
  CuPhysicalProperties properties = {};
  properties.type = kAllocationPinned;
  properties.handleTypes = reach == Reach::kAllProcesses ? kHandleFile : kHandleNone;
  properties.location = {kLocationDevice, device};
  return properties;
}

}  // namespace

Called OwnPart::pageOf(const Cuda& cuda, CuDevice device, Reach reach, size_t* page) {
  const CuPhysicalProperties properties = propertiesOn(device, reach);
  return cuda.cuMemGetAllocationGranularity(page, &properties, kGranularityRecommended);
}

Code OwnPart::make(uint32_t rank, const Gpu& gpu, Copies& copies, Reach reach, CuAddress at,
                   uint64_t bytes, const std::vector<uint32_t>& devices, wl_error_t* error) {
  if (Code code = checkReach(gpu, rank, devices, error); code != WL_OK) return code;
  const CuPhysicalProperties properties = propertiesOn(gpu.device(), reach);
  Code code =
      gpu.checkMemory(gpu.cuda().cuMemCreate(&physical_, bytes, &properties, 0), bytes, error);
  hasPhysical_ = code == WL_OK;
  if (code == WL_OK) code = mapping_.make(gpu, physical_, at, bytes, devices, error);
  // Zeroes the part before any peer learns of it.
  if (code == WL_OK) code = copies.zero(address(), bytes, error);
  return code == WL_OK && reach == Reach::kAllProcesses ? offer(gpu, error) : code;
}

Code OwnPart::offer(const Gpu& gpu, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  int32_t exports = 0;
  Code code = gpu.check(cuda.cuDeviceGetAttribute(&exports, kFileHandles, gpu.device()), error);
  if (code != WL_OK) return code;
  if (exports != 1) {
    return fail(error, WL_UNSUPPORTED,
                "device %u's memory can't go to other processes, says the driver: have all ranks "
                "be threads of one process",
                gpu.number());
  }
  int file = -1;
  code = gpu.check(cuda.cuMemExportToShareableHandle(&file, physical_, kHandleFile, 0), error);
  if (code != WL_OK) return code;
  file_ = OpenFile(file);
  return offer_.open(file, error);
}

Code OwnPart::give(uint32_t takers, Liveness& liveness, wl_error_t* error) {
  const Code code = offer_.give(takers, liveness, error);
  offer_.close();
  file_ = OpenFile();
  return code;
}

void OwnPart::close(const Cuda& cuda, Undone* undone) {
  offer_.close();
  file_ = OpenFile();
  mapping_.close(cuda, undone);
  if (hasPhysical_) undone->note(cuda.cuMemRelease(physical_));
  hasPhysical_ = false;
}

Code PeerPart::map(const Gpu& gpu, CuAddress at, uint64_t bytes,
                   const std::vector<uint32_t>& devices, Liveness& liveness, wl_error_t* error) {
  const Cuda& cuda = gpu.cuda();
  OpenFile file;
  if (Code code = request.take(liveness, &file, error); code != WL_OK) return code;
  void* const handle = reinterpret_cast<void*>(static_cast<intptr_t>(file.number()));
  CuPhysical physical = 0;
  Code code = gpu.check(cuda.cuMemImportFromShareableHandle(&physical, handle, kHandleFile), error);
  if (code != WL_OK) return code;
  code = mapping.make(gpu, physical, at, bytes, devices, error);
  // The mapping keeps the memory.
  const Code released = gpu.check(cuda.cuMemRelease(physical), code == WL_OK ? error : nullptr);
  return code != WL_OK ? code : released;
}

}  // namespace windlass::cuda
