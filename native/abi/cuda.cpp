// SPDX-License-Identifier: Apache-2.0
// C ABI: NVIDIA's driver, and the devices that this process sees.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "native/abi/handles.h"
#include "native/window/cuda/cuda.h"

using namespace windlass;

namespace {

// Device `number`, and calls about it that all have to be OK.
struct Asked {
  const cuda::Cuda& driver;
  wl_error_t* error;
  char what[32];
  cuda::CuDevice device = 0;
  Code code = WL_OK;

  Asked(const cuda::Cuda& of, uint32_t number, wl_error_t* to) : driver(of), error(to) {
    std::snprintf(what, sizeof what, "device %u", number);
    int32_t count = 0;
    code = driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount", "the driver", error);
    if (code != WL_OK) return;
    if (number >= static_cast<uint32_t>(std::max(count, 0))) {
      code = fail(error, WL_INVALID_ARGUMENT, "there is no device %u: this process sees %d", number,
                  count);
      return;
    }
    check(driver.cuDeviceGet(&device, static_cast<int32_t>(number)), "cuDeviceGet");
  }

  void check(cuda::CuResult result, const char* call) {
    if (code == WL_OK) code = driver.check(result, call, what, error);
  }
  void attribute(int32_t which, int32_t* value) {
    if (code == WL_OK)
      check(driver.cuDeviceGetAttribute(value, which, device), "cuDeviceGetAttribute");
  }
};

// A device's free memory is its primary context's to say, which is made for it where the process
// has none.
void findFree(Asked& asked, uint64_t* bytes) {
  const cuda::Cuda& driver = asked.driver;
  cuda::CuContext context = nullptr;
  asked.check(driver.cuDevicePrimaryCtxRetain(&context, asked.device), "cuDevicePrimaryCtxRetain");
  if (asked.code != WL_OK) return;
  size_t free = 0;
  size_t total = 0;
  asked.check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
  if (asked.code == WL_OK) {
    asked.check(driver.cuMemGetInfo(&free, &total), "cuMemGetInfo");
    const cuda::CuResult popped = driver.cuCtxPopCurrent(&context);
    asked.check(popped, "cuCtxPopCurrent");
  }
  const cuda::CuResult released = driver.cuDevicePrimaryCtxRelease(asked.device);
  asked.check(released, "cuDevicePrimaryCtxRelease");
  *bytes = free;
}

}  // namespace

extern "C" {

int32_t wl_cuda_find(wl_error_t* error) {
  const cuda::Cuda* driver = nullptr;
  return cuda::Cuda::find(&driver, error);
}

int32_t wl_cuda_device_count(uint32_t* count, wl_error_t* error) {
  if (Code code = checkNotNull(count, "count", error); code != WL_OK) return code;
  *count = 0;
  const cuda::Cuda* driver = nullptr;
  if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
  int32_t seen = 0;
  const Code code =
      driver->check(driver->cuDeviceGetCount(&seen), "cuDeviceGetCount", "the driver", error);
  if (code == WL_OK) *count = static_cast<uint32_t>(seen);
  return code;
}

int32_t wl_cuda_device(uint32_t device, wl_cuda_device_t* out, wl_error_t* error) {
  wl_cuda_device_t found = {};
  if (out == nullptr || out->struct_size < sizeof found.struct_size)
    return fail(error, WL_INVALID_ARGUMENT, "wl_cuda_device: struct_size is not set");
  const cuda::Cuda* driver = nullptr;
  if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
  Asked asked(*driver, device, error);
  size_t total = 0;
  if (asked.code == WL_OK)
    asked.check(driver->cuDeviceGetName(found.name, sizeof found.name, asked.device),
                "cuDeviceGetName");
  if (asked.code == WL_OK)
    asked.check(driver->cuDeviceTotalMem(&total, asked.device), "cuDeviceTotalMem");
  if (asked.code == WL_OK)
    asked.check(driver->cuDriverGetVersion(&found.driver_version), "cuDriverGetVersion");
  asked.attribute(cuda::kMajor, &found.major);
  asked.attribute(cuda::kMinor, &found.minor);
  asked.attribute(cuda::kMultiprocessors, &found.multiprocessors);
  if (asked.code == WL_OK) findFree(asked, &found.free_bytes);
  if (asked.code != WL_OK) return asked.code;
  found.total_bytes = total;
  found.struct_size = out->struct_size;
  std::memcpy(out, &found, std::min<size_t>(out->struct_size, sizeof found));
  return WL_OK;
}

int32_t wl_cuda_peer(uint32_t from, uint32_t to, int32_t* can, wl_error_t* error) {
  if (Code code = checkNotNull(can, "can", error); code != WL_OK) return code;
  *can = 0;
  const cuda::Cuda* driver = nullptr;
  if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
  const Asked other(*driver, to, error);
  if (other.code != WL_OK) return other.code;
  Asked asked(*driver, from, error);
  if (asked.code != WL_OK) return asked.code;
  if (from == to) {
    *can = 1;
    return WL_OK;
  }
  asked.check(driver->cuDeviceCanAccessPeer(can, asked.device, other.device),
              "cuDeviceCanAccessPeer");
  return asked.code;
}

}  // extern "C"
