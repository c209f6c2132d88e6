// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/cuda.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>

#include "native/base/text.h"

namespace windlass::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int32_t kLeastVersion = 12000;  // the first with all these calls and this kernel format

// Fills the table. Returns the name of the first call that the library lacks, or nullptr.
const char* findCalls(void* library, Cuda* cuda) {
#define WINDLASS_CUDA_FIND(name, suffix, arguments) \
  cuda->name.find(dlsym(library, #name #suffix));   \
  if (!cuda->name.isFound()) return #name #suffix;
  WINDLASS_CUDA_CALLS(WINDLASS_CUDA_FIND)
#undef WINDLASS_CUDA_FIND
  return nullptr;
}

// The first caller returns even if the driver does not.
Code openWithin(int64_t limitNs, Cuda* cuda, wl_error_t* error) {
  struct Opening {
    Cuda cuda;
    wl_error_t error = blankError();
    Code code = WL_OK;
  };
  try {
    const auto opening = std::make_shared<Opening>();
    const auto open = [opening] {
      opening->code = Cuda::open(kLibrary, &opening->cuda, &opening->error);
    };
    const char* const call = runWatched(open, limitNs);
    if (call != nullptr) {
      return fail(error, WL_DEVICE,
                  "NVIDIA's driver, %s, does not return from %s within %lld ms: look for Xid lines "
                  "in dmesg, and whether nvidia-smi does",
                  kLibrary, call, static_cast<long long>(limitNs / 1'000'000));
    }
    if (opening->code != WL_OK) return copyError(error, opening->error, nullptr);
    *cuda = opening->cuda;
    return WL_OK;
  } catch (const std::exception&) {
    return fail(error, WL_RESOURCE,
                "there is no thread, or no memory for one, that opens NVIDIA's driver");
  }
}

}  // namespace

Code Cuda::open(const char* library, Cuda* cuda, wl_error_t* error) {
  *cuda = Cuda();
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* said = dlerror();
    return fail(error, WL_UNSUPPORTED,
                "NVIDIA's driver, %s, does not open: %s; install the driver, and in a container "
                "start it with its GPUs",
                library, said == nullptr ? "the dynamic linker does not say why" : said);
  }
  Cuda found;
  if (const char* lacking = findCalls(opened, &found); lacking != nullptr) {
    dlclose(opened);
    return fail(error, WL_UNSUPPORTED, "NVIDIA's driver, %s, lacks %s: it is too old", library,
                lacking);
  }
  int32_t version = 0;
  Code code = found.check(found.cuInit(0), "the driver", error);
  if (code == WL_OK) code = found.check(found.cuDriverGetVersion(&version), "the driver", error);
  if (code != WL_OK) return code;
  if (version < kLeastVersion) {
    return fail(error, WL_UNSUPPORTED, "NVIDIA's driver is for CUDA %d.%d: %s", version / 1000,
                version % 1000 / 10, meaningOf(35).cure);
  }
  *cuda = found;
  return WL_OK;
}

Code Cuda::find(const Cuda** cuda, wl_error_t* error) {
  static std::mutex mutex;
  static Cuda found;
  const auto lock = WatchedCalls::lock(mutex);
  *cuda = nullptr;
  if (!found.cuInit.isFound()) {
    if (Code code = openWithin(openLimitNs, &found, error); code != WL_OK) return code;
  }
  *cuda = &found;
  return WL_OK;
}

Code Cuda::check(const Called& called, const char* what, wl_error_t* error) const {
  const auto [result, call] = called;
  if (result == kCuOk) return WL_OK;
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != kCuOk || name == nullptr) name = "an unknown error";
  if (cuGetErrorString(result, &text) != kCuOk || text == nullptr) text = "the driver says no more";
  const Meaning meaning = meaningOf(result);
  return fail(error, meaning.code, "%s of %s returned %s (%d): %.300s; %s", call, what, name,
              result, text, meaning.cure);
}

Code Cuda::checkMemory(const Called& called, const char* what, uint64_t bytes,
                       wl_error_t* error) const {
  size_t free = 0;
  size_t total = 0;
  if (called != kCuOutOfMemory || cuMemGetInfo(&free, &total) != kCuOk)
    return check(called, what, error);
  char asked[160];
  std::snprintf(asked, sizeof asked, "%s, asked for %llu bytes where %llu of its %llu are free,",
                what, text(bytes), text(free), text(total));
  return check(called, asked, error);
}

uint32_t countDevices() {
  const Cuda* cuda = nullptr;
  int32_t count = 0;
  if (Cuda::find(&cuda, nullptr) != WL_OK || cuda->cuDeviceGetCount(&count) != kCuOk) return 0;
  return static_cast<uint32_t>(std::max(count, 0));
}

}  // namespace windlass::cuda
