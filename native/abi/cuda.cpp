// SPDX-License-Identifier: Apache-2.0
// C ABI: NVIDIA's driver, and the devices that are visible to this process.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "native/abi/handles.h"
#include "native/base/target.h"
#include "native/device/cuda/polling.h"
#include "native/device/grids.h"

using namespace windlass;

namespace {

constexpr const char* kNoTable = "out of memory for a table of grids";

// Calls of the driver about `of`. The first failing call sets `code`; later calls are skipped.
struct Asked {
  Asked(const char* of, wl_error_t* to) : error(to), code(cuda::Cuda::find(&driver, to)) {
    std::snprintf(what, sizeof what, "%s", of);
  }
  // Checks that there is a device `number`, and sets `device` to it.
  Asked(uint32_t number, wl_error_t* to) : Asked("the driver", to) {
    int32_t count = 0;
    call(&cuda::Cuda::cuDeviceGetCount, &count);
    std::snprintf(what, sizeof what, "device %u", number);
    if (code == WL_OK && number >= static_cast<uint32_t>(std::max(count, 0))) {
      code = fail(error, WL_INVALID_ARGUMENT, "there is no device %u: this process sees %d", number,
                  count);
    }
    call(&cuda::Cuda::cuDeviceGet, &device, static_cast<int32_t>(number));
  }

  template <class Call, class... Arguments>
  void call(Call cuda::Cuda::*function, Arguments... arguments) {
    if (code == WL_OK) check((driver->*function)(arguments...));
  }
  void check(const cuda::Called& called) {
    if (code == WL_OK) code = driver->check(called, what, error);
  }
  int32_t attribute(int32_t which) {
    int32_t value = 0;
    call(&cuda::Cuda::cuDeviceGetAttribute, &value, which, device);
    return value;
  }

  const cuda::Cuda* driver = nullptr;
  wl_error_t* error;
  char what[32];
  cuda::CuDevice device = 0;
  Code code;
};

// Keeps a device's primary context current until destruction. The context is created if the process
// has none. keep() leaves it retained for an allocation. drop() releases what one keep() left.
class InContext {
 public:
  InContext(Asked& asked, cuda::CuDevice device) : asked_(asked), device_(device) {
    cuda::CuContext context = nullptr;
    asked.call(&cuda::Cuda::cuDevicePrimaryCtxRetain, &context, device);
    isRetained_ = asked.code == WL_OK;
    asked.call(&cuda::Cuda::cuCtxPushCurrent, context);
    isCurrent_ = asked.code == WL_OK;
  }
  ~InContext() {
    cuda::CuContext popped = nullptr;
    if (isCurrent_) asked_.check(asked_.driver->cuCtxPopCurrent(&popped));
    if (isRetained_) drop();
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

  void keep() { isRetained_ = false; }
  void drop() { asked_.check(asked_.driver->cuDevicePrimaryCtxRelease(device_)); }

 private:
  Asked& asked_;
  const cuda::CuDevice device_;
  bool isRetained_;
  bool isCurrent_;
};

// Sets asked.device to the device that has the memory. The driver needs a current context, so this
// uses the one of device 0.
void findDeviceOf(uint64_t memory, Asked& asked) {
  asked.call(&cuda::Cuda::cuDeviceGet, &asked.device, 0);
  int32_t number = 0;
  {
    const InContext first(asked, asked.device);
    if (asked.code != WL_OK) return;
    const cuda::Called found =
        asked.driver->cuPointerGetAttribute(&number, cuda::kMemoryDevice, memory);
    if (found == cuda::kCuInvalidValue) {
      asked.code = fail(asked.error, WL_INVALID_ARGUMENT, "%#llx is in no device's memory",
                        text(memory));
    }
    asked.check(found);
  }
  asked.call(&cuda::Cuda::cuDeviceGet, &asked.device, number);
}

}  // namespace

extern "C" {

int32_t wl_cuda_find(wl_error_t* error) {
  const cuda::Cuda* driver = nullptr;
  return cuda::Cuda::find(&driver, error);
}

int32_t wl_cuda_device_count(uint32_t* count, wl_error_t* error) {
  if (Code code = checkOut(count, "count", error)) return code;
  Asked asked("the driver", error);
  int32_t seen = 0;
  asked.call(&cuda::Cuda::cuDeviceGetCount, &seen);
  *count = static_cast<uint32_t>(asked.code == WL_OK ? seen : 0);
  return asked.code;
}

int32_t wl_cuda_device(uint32_t device, wl_cuda_device_t* out, wl_error_t* error) {
  wl_cuda_device_t found = {};
  if (out == nullptr || out->struct_size < sizeof found.struct_size)
    return fail(error, WL_INVALID_ARGUMENT, "wl_cuda_device: struct_size is not set");
  Asked asked(device, error);
  size_t free = 0;
  size_t total = 0;
  asked.call(&cuda::Cuda::cuDeviceGetName, found.name,
             static_cast<int32_t>(sizeof found.name), asked.device);
  asked.call(&cuda::Cuda::cuDeviceTotalMem, &total, asked.device);
  asked.call(&cuda::Cuda::cuDriverGetVersion, &found.driver_version);
  found.major = asked.attribute(cuda::kMajor);
  found.minor = asked.attribute(cuda::kMinor);
  found.multiprocessors = asked.attribute(cuda::kMultiprocessors);
  {
    size_t unused = 0;
    const InContext context(asked, asked.device);
    asked.call(&cuda::Cuda::cuMemGetInfo, &free, &unused);
  }
  if (asked.code != WL_OK) return asked.code;
  found.free_bytes = free;
  found.total_bytes = total;
  found.struct_size = out->struct_size;
  std::memcpy(out, &found, std::min<size_t>(out->struct_size, sizeof found));
  return WL_OK;
}

int32_t wl_cuda_peer(uint32_t from, uint32_t to, int32_t* can, wl_error_t* error) {
  if (Code code = checkOut(can, "can", error)) return code;
  const Asked other(to, error);
  if (other.code != WL_OK) return other.code;
  Asked asked(from, error);
  if (from == to) {
    *can = asked.code == WL_OK ? 1 : 0;
    return asked.code;
  }
  asked.call(&cuda::Cuda::cuDeviceCanAccessPeer, can, asked.device, other.device);
  return asked.code;
}

int32_t wl_cuda_cores(uint32_t device, uint32_t* cores, wl_error_t* error) {
  if (Code code = checkOut(cores, "cores", error)) return code;
  if (!kTarget.hasGpus()) {
    return fail(error, WL_UNSUPPORTED, "%s has no kernels of GPUs: the target cuda has",
                kTarget.limits.name);
  }
  const Asked asked(device, error);
  if (asked.code != WL_OK) return asked.code;
  cuda::Gpu* gpu = nullptr;
  if (Code code = cuda::Gpu::take(*asked.driver, device, kTarget.image, &gpu, error)) return code;
  *cores = gpu->own().blocksAtOnce;
  return gpu->leave(error);
}

int32_t wl_cuda_grids_use(const char* table, wl_error_t* error) {
  return withMemory(error, [&] { return Grids::use(table, error); }, kNoTable);
}

int32_t wl_cuda_grids_rows(uint32_t device, uint32_t* rows, wl_error_t* error) {
  if (Code code = checkOut(rows, "rows", error)) return code;
  const auto count = [&] {
    const auto table = Grids::table();
    if (table == nullptr) return Grids::check(error);
    Asked asked(device, error);
    const auto attribute = [&](int32_t which) {
      return static_cast<uint32_t>(asked.attribute(which));
    };
    const uint32_t found = table->rowsOf({attribute(cuda::kMajor), attribute(cuda::kMinor),
                                          attribute(cuda::kMultiprocessors)});
    if (asked.code == WL_OK) *rows = found;
    return asked.code;
  };
  return withMemory(error, count, kNoTable);
}

int32_t wl_cuda_memory_alloc(uint64_t beside, uint64_t bytes, uint64_t* address,
                             wl_error_t* error) {
  if (Code code = checkOut(address, "address", error)) return code;
  Asked asked("a device's memory", error);
  findDeviceOf(beside, asked);
  InContext context(asked, asked.device);
  cuda::CuAddress made = 0;
  if (asked.code == WL_OK) {
    asked.code = asked.driver->checkMemory(asked.driver->cuMemAlloc(&made, bytes), asked.what,
                                           bytes, error);
  }
  if (asked.code != WL_OK) return asked.code;
  // Runs on the legacy default stream, and the code below waits for it.
  asked.call(&cuda::Cuda::cuMemsetD8, made, uint8_t{0}, bytes);
  if (asked.code == WL_OK) {
    const int64_t limitNs = cuda::copyLimitNs;
    const cuda::Called over =
        cuda::lookUntil([&] { return asked.driver->cuStreamQuery(nullptr); }, limitNs);
    if (over == cuda::kCuNotReady) {
      // The device may still write the memory, so it is not freed.
      context.keep();
      return fail(error, WL_DEVICE,
                  "a device did not clear %llu bytes within %lld ms: something else holds up its "
                  "default stream; see what else the program runs there",
                  text(bytes), text(limitNs / 1'000'000));
    }
    asked.check(over);
  }
  if (asked.code != WL_OK) {
    asked.driver->cuMemFree(made);
    return asked.code;
  }
  context.keep();
  *address = made;
  return WL_OK;
}

void wl_cuda_memory_free(uint64_t address) {
  if (address == 0) return;
  Asked asked("a device's memory", nullptr);
  findDeviceOf(address, asked);
  InContext context(asked, asked.device);
  asked.call(&cuda::Cuda::cuMemFree, address);
  if (asked.code == WL_OK) context.drop();
}

}  // extern "C"
