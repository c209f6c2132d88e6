// SPDX-License-Identifier: Apache-2.0
// Calls of NVIDIA's driver that Windlass makes, under their own names. They are found at run time,
// so this library also loads without a driver. Types, values and argument orders are those of the
// driver API in CUDA 13.0. tests/native/cuda compares them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "native/base/error.h"
#include "native/device/watched_calls.h"

namespace windlass::cuda {

using CuResult = int32_t;
constexpr CuResult kCuOk = 0;
constexpr CuResult kCuInvalidValue = 1;
constexpr CuResult kCuOutOfMemory = 2;
constexpr CuResult kCuInvalidHandle = 400;
constexpr CuResult kCuNotFound = 500;
constexpr CuResult kCuNotReady = 600;  // the work is not over yet

using CuDevice = int32_t;
using CuContext = struct CuContextOf*;
using CuModule = struct CuModuleOf*;
using CuFunction = struct CuFunctionOf*;
using CuStream = struct CuStreamOf*;
using CuEvent = struct CuEventOf*;
using CuGraph = struct CuGraphOf*;
using CuAddress = uint64_t;   // address that the device sees
using CuPhysical = uint64_t;  // physical memory of a device

constexpr int32_t kMultiprocessors = 16;  // attributes of a device
constexpr int32_t kMajor = 75;
constexpr int32_t kMinor = 76;
constexpr int32_t kCooperativeLaunch = 95;
constexpr int32_t kVirtualMemory = 102;
constexpr int32_t kFileHandles = 103;
constexpr int32_t kMemoryContext = 1;  // attributes of a pointer
constexpr int32_t kMemoryType = 2;
constexpr int32_t kMemoryDevice = 9;
constexpr int32_t kUnknownMemory = 0;  // types of memory: the driver does not know it
constexpr int32_t kHostMemory = 1;
constexpr int32_t kDeviceMemory = 2;
constexpr int32_t kUnifiedMemory = 4;       // host or device, according to the address
constexpr int32_t kMostThreads = 0;         // attributes of a function
constexpr uint32_t kStreamNonBlocking = 1;  // doesn't synchronize with the legacy stream
constexpr uint32_t kEventDisableTiming = 2;
constexpr int32_t kCaptureNone = 0;     // capture states of a stream
constexpr int32_t kCaptureActive = 1;
constexpr int32_t kCaptureRelaxed = 2;  // a mode: other threads' captures don't restrict this one
constexpr uint32_t kHostPortable = 1;
constexpr uint32_t kHostDeviceMap = 2;
constexpr int32_t kAllocationPinned = 1;
constexpr int32_t kLocationDevice = 1;
constexpr int32_t kHandleNone = 0;
constexpr int32_t kHandleFile = 1;
constexpr int32_t kAccessReadWrite = 3;
constexpr int32_t kGranularityRecommended = 1;
constexpr int32_t kNativeAtomics = 3;  // an attribute of two devices

struct CuLocation {
  int32_t type;
  int32_t id;
};
struct CuPhysicalProperties {
  int32_t type;
  int32_t handleTypes;
  CuLocation location;
  void* ofWindows;
  uint8_t compression;
  uint8_t directRdma;
  uint16_t usage;
  uint8_t reserved[4];
};
struct CuAccess {
  CuLocation location;
  int32_t flags;
};
struct CuCopySide {
  size_t x, y;
  int32_t kind;
  void* host;
  CuAddress device;
  void* array;
  size_t pitch;
};
struct CuCopy2D {
  CuCopySide from, to;
  size_t rowBytes, rows;
};

// Expands call(name, suffix, arguments) for each driver call. The driver exports it as the name
// with the suffix.
// clang-format off
#define WINDLASS_CUDA_CALLS(call)                                                                  \
  call(cuInit, , (uint32_t flags))                                                                 \
  call(cuDriverGetVersion, , (int32_t* version))                                                   \
  call(cuGetErrorName, , (CuResult result, const char** name))                                     \
  call(cuGetErrorString, , (CuResult result, const char** text))                                   \
  call(cuDeviceGetCount, , (int32_t* count))                                                       \
  call(cuDeviceGet, , (CuDevice* device, int32_t ordinal))                                         \
  call(cuDeviceGetName, , (char* name, int32_t room, CuDevice device))                             \
  call(cuDeviceTotalMem, _v2, (size_t* bytes, CuDevice device))                                    \
  call(cuDeviceGetAttribute, , (int32_t* value, int32_t attribute, CuDevice device))               \
  call(cuDeviceCanAccessPeer, , (int32_t* can, CuDevice device, CuDevice peer))                    \
  call(cuDeviceGetP2PAttribute, ,                                                                  \
       (int32_t* value, int32_t attribute, CuDevice from, CuDevice to))                            \
  call(cuDevicePrimaryCtxRetain, , (CuContext* context, CuDevice device))                          \
  call(cuDevicePrimaryCtxRelease, _v2, (CuDevice device))                                          \
  call(cuCtxPushCurrent, _v2, (CuContext context))                                                 \
  call(cuCtxPopCurrent, _v2, (CuContext* context))                                                 \
  call(cuModuleLoadData, , (CuModule* module, const void* image))                                  \
  call(cuModuleUnload, , (CuModule module))                                                        \
  call(cuModuleGetFunction, , (CuFunction* function, CuModule module, const char* name))           \
  call(cuFuncGetAttribute, , (int32_t* value, int32_t attribute, CuFunction function))             \
  call(cuOccupancyMaxActiveBlocksPerMultiprocessor, ,                                              \
       (int32_t* blocks, CuFunction function, int32_t threads, size_t sharedBytes))                \
  call(cuLaunchCooperativeKernel, ,                                                                \
       (CuFunction function, uint32_t gridX, uint32_t gridY, uint32_t gridZ, uint32_t blockX,      \
        uint32_t blockY, uint32_t blockZ, uint32_t sharedBytes, CuStream stream,                   \
        void** arguments))                                                                         \
  call(cuLaunchKernel, ,                                                                           \
       (CuFunction function, uint32_t gridX, uint32_t gridY, uint32_t gridZ, uint32_t blockX,      \
        uint32_t blockY, uint32_t blockZ, uint32_t sharedBytes, CuStream stream,                   \
        void** arguments, void** extra))                                                           \
  call(cuStreamCreate, , (CuStream* stream, uint32_t flags))                                       \
  call(cuStreamDestroy, _v2, (CuStream stream))                                                    \
  call(cuStreamQuery, , (CuStream stream))                                                         \
  call(cuStreamWaitEvent, , (CuStream stream, CuEvent event, uint32_t flags))                      \
  call(cuStreamGetCtx, , (CuStream stream, CuContext* context))                                    \
  call(cuStreamGetCaptureInfo, _v3,                                                                \
       (CuStream stream, int32_t* state, uint64_t* capture, CuGraph* graph, const void** nodes,    \
        const void** edges, size_t* count))                                                        \
  call(cuThreadExchangeStreamCaptureMode, , (int32_t* mode))                                       \
  call(cuEventCreate, , (CuEvent* event, uint32_t flags))                                          \
  call(cuEventDestroy, _v2, (CuEvent event))                                                       \
  call(cuEventRecord, , (CuEvent event, CuStream stream))                                          \
  call(cuEventQuery, , (CuEvent event))                                                            \
  call(cuMemGetInfo, _v2, (size_t* free, size_t* total))                                           \
  call(cuMemAlloc, _v2, (CuAddress* memory, size_t bytes))                                         \
  call(cuMemFree, _v2, (CuAddress memory))                                                         \
  call(cuMemHostAlloc, , (void** memory, size_t bytes, uint32_t flags))                            \
  call(cuMemFreeHost, , (void* memory))                                                            \
  call(cuMemHostGetDevicePointer, _v2, (CuAddress* address, void* memory, uint32_t flags))         \
  call(cuMemcpyHtoDAsync, _v2, (CuAddress to, const void* from, size_t bytes, CuStream stream))    \
  call(cuMemcpyDtoHAsync, _v2, (void* to, CuAddress from, size_t bytes, CuStream stream))          \
  call(cuMemcpyAsync, , (CuAddress to, CuAddress from, size_t bytes, CuStream stream))             \
  call(cuMemcpy2DAsync, _v2, (const CuCopy2D* copy, CuStream stream))                              \
  call(cuMemsetD8Async, , (CuAddress to, uint8_t value, size_t bytes, CuStream stream))            \
  call(cuMemsetD8, _v2, (CuAddress to, uint8_t value, size_t bytes))                               \
  call(cuMemGetAllocationGranularity, ,                                                            \
       (size_t* bytes, const CuPhysicalProperties* properties, int32_t option))                    \
  call(cuMemCreate, ,                                                                              \
       (CuPhysical* physical, size_t bytes, const CuPhysicalProperties* properties,                \
        uint64_t flags))                                                                           \
  call(cuMemRelease, , (CuPhysical physical))                                                      \
  call(cuMemExportToShareableHandle, ,                                                             \
       (void* handle, CuPhysical physical, int32_t handleType, uint64_t flags))                    \
  call(cuMemImportFromShareableHandle, ,                                                           \
       (CuPhysical* physical, void* handle, int32_t handleType))                                   \
  call(cuMemAddressReserve, ,                                                                      \
       (CuAddress* address, size_t bytes, size_t alignment, CuAddress wish, uint64_t flags))       \
  call(cuMemAddressFree, , (CuAddress address, size_t bytes))                                      \
  call(cuMemMap, ,                                                                                 \
       (CuAddress address, size_t bytes, size_t offset, CuPhysical physical, uint64_t flags))      \
  call(cuMemUnmap, , (CuAddress address, size_t bytes))                                            \
  call(cuPointerGetAttribute, , (void* value, int32_t attribute, CuAddress address))               \
  call(cuMemGetAddressRange, _v2, (CuAddress* base, size_t* bytes, CuAddress address))             \
  call(cuMemSetAccess, , (CuAddress address, size_t bytes, const CuAccess* access, size_t count))  \
  call(cuMemGetAccess, ,                                                                           \
       (unsigned long long* flags, const CuLocation* location, CuAddress address))
// clang-format on

// Result of a driver call, with the call's name for errors.
struct Called {
  CuResult result;
  const char* call;

  operator CuResult() const { return result; }
};

// A driver call. Threads that wait for the calling thread can see that it is in this call.
template <class>
class CudaCall;
template <class... Arguments>
class CudaCall<CuResult(Arguments...)> {
 public:
  explicit constexpr CudaCall(const char* name) : name_(name) {}
  void find(void* symbol) { function_ = reinterpret_cast<CuResult (*)(Arguments...)>(symbol); }
  bool isFound() const { return function_ != nullptr; }
  Called operator()(Arguments... arguments) const {
    const WatchedCalls::Scope inside(name_);
    return {function_(arguments...), name_};
  }

 private:
  const char* name_;
  CuResult (*function_)(Arguments...) = nullptr;
};

// Time for the call that opens the driver. It starts GPUs that no process keeps started. Tests set
// less.
constexpr int64_t kOpenLimitNs = 60'000'000'000;
inline std::atomic<int64_t> openLimitNs{kOpenLimitNs};

struct Cuda {
#define WINDLASS_CUDA_MEMBER(name, suffix, arguments) CudaCall<CuResult arguments> name{#name};
  WINDLASS_CUDA_CALLS(WINDLASS_CUDA_MEMBER)
#undef WINDLASS_CUDA_MEMBER

  // Opens and initialises the driver for the life of the process. `library`: the file, as the
  // dynamic linker finds it. On WL_UNSUPPORTED, the error says what is missing or too old.
  static Code open(const char* library, Cuda* cuda, wl_error_t* error);
  // Finds this process's driver, libcuda.so.1. The first successful call opens it. On failure *cuda
  // is nullptr. Any thread.
  static Code find(const Cuda** cuda, wl_error_t* error);

  // Converts the result of a call: WL_OK for kCuOk, otherwise WL_DEVICE, WL_UNSUPPORTED or
  // WL_RESOURCE. The error gives the result's name and number, and a remedy. `what`: object of the
  // call.
  Code check(const Called& called, const char* what, wl_error_t* error) const;
  // Like check(), for a call that requested `bytes` of memory from device `what`, whose context is
  // current.
  Code checkMemory(const Called& called, const char* what, uint64_t bytes, wl_error_t* error) const;
};

// Meaning of errors of the driver: the resulting code, and what to do.
struct Meaning {
  CuResult first;  // results from `first` to `last` mean the same; both -1: not in the table
  CuResult last;
  Code code;
  const char* cure;  // a sentence without its full stop
};

// Returns the meaning of any error; WL_DEVICE if the table does not list it.
Meaning meaningOf(CuResult result);

// Number of devices that this process sees; 0 if there are none or no driver opens.
uint32_t countDevices();

}  // namespace windlass::cuda
