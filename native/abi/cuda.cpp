// SPDX-License-Identifier: Apache-2.0
// C ABI: NVIDIA's driver, and the devices that are visible to this process.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "native/abi/handles.h"
#include "native/base/target.h"
#include "native/device/cuda/polling.h"
#include "native/device/grids.h"

using namespace windlass;

namespace {

// Queries device `number`. The first failing call sets `code`; later calls are skipped.
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

// Queries free memory through the device's primary context, which is created if the process has
// none.
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

// Finds the device that holds the memory, and keeps its primary context current until destruction.
// keep() leaves that context retained for an allocation. drop() releases what one keep() left.
class DeviceOf {
 public:
  DeviceOf(const cuda::Cuda& driver, uint64_t memory, wl_error_t* error)
      : driver_(driver), error_(error) {
    int32_t number = 0;
    find(memory, &number);
    if (code == WL_OK) check(driver.cuDeviceGet(&device_, number), "cuDeviceGet");
    cuda::CuContext context = nullptr;
    if (code == WL_OK) {
      check(driver.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
      isRetained_ = code == WL_OK;
    }
    if (code != WL_OK) return;
    check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    isCurrent_ = code == WL_OK;
  }
  ~DeviceOf() {
    cuda::CuContext popped = nullptr;
    if (isCurrent_) driver_.cuCtxPopCurrent(&popped);
    if (isRetained_) driver_.cuDevicePrimaryCtxRelease(device_);
  }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;

  void check(cuda::CuResult result, const char* call) {
    if (code == WL_OK) code = driver_.check(result, call, "a device's memory", error_);
  }
  void keep() { isRetained_ = false; }
  void drop() { driver_.cuDevicePrimaryCtxRelease(device_); }

  Code code = WL_OK;

 private:
  // The driver needs a current context, so find() uses the one of device 0.
  void find(uint64_t memory, int32_t* number) {
    cuda::CuDevice first = 0;
    cuda::CuContext context = nullptr;
    check(driver_.cuDeviceGet(&first, 0), "cuDeviceGet");
    if (code != WL_OK) return;
    check(driver_.cuDevicePrimaryCtxRetain(&context, first), "cuDevicePrimaryCtxRetain");
    if (code != WL_OK) return;
    check(driver_.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    if (code == WL_OK) {
      const cuda::CuResult found =
          driver_.cuPointerGetAttribute(number, cuda::kMemoryDevice, memory);
      if (found == cuda::kCuInvalidValue) {
        code = fail(error_, WL_INVALID_ARGUMENT, "%#llx is in no device's memory",
                    static_cast<unsigned long long>(memory));
      } else {
        check(found, "cuPointerGetAttribute");
      }
      driver_.cuCtxPopCurrent(&context);
    }
    driver_.cuDevicePrimaryCtxRelease(first);
  }

  const cuda::Cuda& driver_;
  wl_error_t* const error_;
  cuda::CuDevice device_ = 0;
  bool isRetained_ = false;
  bool isCurrent_ = false;
};

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

int32_t wl_cuda_cores(uint32_t device, uint32_t* cores, wl_error_t* error) {
  if (Code code = checkNotNull(cores, "cores", error); code != WL_OK) return code;
  *cores = 0;
  if (!kTarget.hasGpus()) {
    return fail(error, WL_UNSUPPORTED, "%s has no kernels of GPUs: the target cuda has",
                kTarget.limits.name);
  }
  const cuda::Cuda* driver = nullptr;
  if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
  const Asked asked(*driver, device, error);
  if (asked.code != WL_OK) return asked.code;
  cuda::Gpu* gpu = nullptr;
  Code code = cuda::Gpu::take(*driver, device, kTarget.image, &gpu, error);
  if (code != WL_OK) return code;
  *cores = gpu->own().blocksAtOnce;
  return gpu->leave(error);
}

int32_t wl_cuda_grids_use(const char* table, wl_error_t* error) {
  try {
    return Grids::use(table, error);
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for a table of grids");
  }
}

int32_t wl_cuda_grids_rows(uint32_t device, uint32_t* rows, wl_error_t* error) {
  if (Code code = checkNotNull(rows, "rows", error); code != WL_OK) return code;
  *rows = 0;
  try {
    const auto table = Grids::table();
    if (table == nullptr) return Grids::check(error);
    const cuda::Cuda* driver = nullptr;
    if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
    Asked asked(*driver, device, error);
    int32_t kind[3] = {};
    asked.attribute(cuda::kMajor, &kind[0]);
    asked.attribute(cuda::kMinor, &kind[1]);
    asked.attribute(cuda::kMultiprocessors, &kind[2]);
    if (asked.code != WL_OK) return asked.code;
    *rows = table->rowsOf({static_cast<uint32_t>(kind[0]), static_cast<uint32_t>(kind[1]),
                           static_cast<uint32_t>(kind[2])});
    return WL_OK;
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for a table of grids");
  }
}

int32_t wl_cuda_memory_alloc(uint64_t beside, uint64_t bytes, uint64_t* address,
                             wl_error_t* error) {
  if (Code code = checkNotNull(address, "address", error); code != WL_OK) return code;
  *address = 0;
  const cuda::Cuda* driver = nullptr;
  if (Code code = cuda::Cuda::find(&driver, error); code != WL_OK) return code;
  DeviceOf device(*driver, beside, error);
  cuda::CuAddress made = 0;
  if (device.code == WL_OK) {
    device.code = driver->checkMemory(driver->cuMemAlloc(&made, bytes), "cuMemAlloc",
                                      "a device's memory", bytes, error);
  }
  if (device.code != WL_OK) return device.code;
  // Runs on the legacy default stream, and the code below waits for it.
  device.check(driver->cuMemsetD8(made, 0, bytes), "cuMemsetD8");
  if (device.code == WL_OK) {
    const int64_t limitNs = cuda::copyLimitNs;
    const cuda::CuResult over =
        cuda::lookUntil([&] { return driver->cuStreamQuery(nullptr); }, limitNs);
    if (over == cuda::kCuNotReady) {
      // The device may still write the memory, so it is not freed.
      device.keep();
      return fail(error, WL_DEVICE,
                  "a device did not clear %llu bytes within %lld ms: something else holds up its "
                  "default stream; see what else the program runs there",
                  static_cast<unsigned long long>(bytes),
                  static_cast<long long>(limitNs / 1'000'000));
    }
    device.check(over, "cuStreamQuery");
  }
  if (device.code != WL_OK) {
    driver->cuMemFree(made);
    return device.code;
  }
  device.keep();
  *address = made;
  return WL_OK;
}

void wl_cuda_memory_free(uint64_t address) {
  const cuda::Cuda* driver = nullptr;
  if (address == 0 || cuda::Cuda::find(&driver, nullptr) != WL_OK) return;
  DeviceOf device(*driver, address, nullptr);
  if (device.code == WL_OK && driver->cuMemFree(address) == cuda::kCuOk) device.drop();
}

}  // extern "C"
