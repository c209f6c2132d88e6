// SPDX-License-Identifier: Apache-2.0
// Public calls of the Ascend runtime (ACL) that Windlass makes, under their own names. They are
// found at run time, so this library also loads without the runtime. Types, values and argument
// orders follow Huawei's documentation. They have not been tested on a device yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "native/base/error.h"

namespace windlass::acl {

using AclError = int32_t;
constexpr AclError kAclOk = 0;
constexpr AclError kAclTimedOut = 507046;     // a wait for a stream
constexpr AclError kAclInitialised = 100002;  // this process has initialised it before
constexpr AclError kAclCoreTimeout = 507014;  // the next number is an exception of a core
constexpr AclError kAclCoreTrap = 507016;
constexpr AclError kAclVectorCoreTimeout = 507034;  // likewise
constexpr AclError kAclVectorCoreTrap = 507036;
// True if a wait's result says that the kernel has ended, with or without success.
constexpr bool saysEnded(AclError result) {
  return result == kAclOk || (result >= kAclCoreTimeout && result <= kAclCoreTrap) ||
         (result >= kAclVectorCoreTimeout && result <= kAclVectorCoreTrap);
}

using AclStream = void*;
using AclPhysical = void*;  // physical memory of a device

constexpr int32_t kMallocHugeFirst = 0;
constexpr int32_t kHostToDevice = 1;
constexpr int32_t kDeviceToHost = 2;
constexpr int32_t kGranularityMinimum = 0;
constexpr int32_t kHandleTypeNone = 0;
constexpr int32_t kAllocationPinned = 0;
constexpr int32_t kMemoryHuge = 0;  // pages of 2 MiB
constexpr int32_t kLocationDevice = 1;
constexpr int32_t kAccessReadWrite = 3;
constexpr uint64_t kExportToNamedProcesses = 0;

struct AclLocation {
  uint32_t id;
  int32_t type;
};
struct AclPhysicalProperties {
  int32_t handleType;
  int32_t allocationType;
  int32_t attributes;
  AclLocation location;  // device number among those that the process sees
  uint64_t reserved;
};
struct AclAccess {
  int32_t flags;
  AclLocation location;  // device number of the driver, which counts all
  uint8_t reserved[12];
};

// Expands call(result, name, arguments) for each runtime call.
#define WINDLASS_ACL_CALLS(call)                                                                   \
  call(AclError, aclInit, (const char* configuration))                                             \
  call(AclError, aclrtSetDevice, (int32_t device))                                                 \
  call(AclError, aclrtResetDevice, (int32_t device))                                               \
  call(AclError, aclrtCreateStream, (AclStream * stream))                                          \
  call(AclError, aclrtDestroyStream, (AclStream stream))                                           \
  call(AclError, aclrtSynchronizeStreamWithTimeout, (AclStream stream, int32_t milliseconds))      \
  call(AclError, aclrtMalloc, (void** memory, size_t bytes, int32_t policy))                       \
  call(AclError, aclrtFree, (void* memory))                                                        \
  call(AclError, aclrtMemcpy,                                                                      \
       (void* to, size_t room, const void* from, size_t bytes, int32_t kind))                      \
  call(AclError, aclrtMemset, (void* memory, size_t room, int32_t value, size_t bytes))            \
  call(AclError, aclrtMemGetAllocationGranularity,                                                 \
       (AclPhysicalProperties * properties, int32_t option, size_t* bytes))                        \
  call(AclError, aclrtMallocPhysical,                                                              \
       (AclPhysical * physical, size_t bytes, const AclPhysicalProperties* properties,             \
        uint64_t flags))                                                                           \
  call(AclError, aclrtFreePhysical, (AclPhysical physical))                                        \
  call(AclError, aclrtReserveMemAddress,                                                           \
       (void** address, size_t bytes, size_t alignment, void* wish, uint64_t flags))               \
  call(AclError, aclrtReleaseMemAddress, (void* address))                                          \
  call(AclError, aclrtMapMem,                                                                      \
       (void* address, size_t bytes, size_t offset, AclPhysical physical, uint64_t flags))         \
  call(AclError, aclrtUnmapMem, (void* address))                                                   \
  call(AclError, aclrtMemExportToShareableHandle,                                                  \
       (AclPhysical physical, int32_t type, uint64_t flags, uint64_t* handle))                     \
  call(AclError, aclrtMemSetPidToShareableHandle,                                                  \
       (uint64_t handle, int32_t* processes, size_t count))                                        \
  call(AclError, aclrtDeviceGetBareTgid, (int32_t * process))                                      \
  call(AclError, aclrtMemImportFromShareableHandle,                                                \
       (uint64_t handle, int32_t device, AclPhysical* physical))                                   \
  call(AclError, aclrtDeviceCanAccessPeer, (int32_t * can, int32_t device, int32_t peer))          \
  call(AclError, aclrtDeviceEnablePeerAccess, (int32_t peer, uint32_t flags))                      \
  call(AclError, aclrtDevicePeerAccessStatus, (int32_t device, int32_t peer, int32_t* status))     \
  call(const char*, aclGetRecentErrMsg, ())

// Calls that older toolkits lack. Their memory is accessible once it is mapped.
#define WINDLASS_ACL_LATER_CALLS(call) \
  call(AclError, aclrtMemSetAccess,    \
       (void* address, size_t bytes, AclAccess* access, size_t count))

struct Acl {
#define WINDLASS_ACL_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  WINDLASS_ACL_CALLS(WINDLASS_ACL_MEMBER)
  WINDLASS_ACL_LATER_CALLS(WINDLASS_ACL_MEMBER)
#undef WINDLASS_ACL_MEMBER

  // Opens the runtime, libascendcl.so. Searches lib64 of the toolkit's folder `home` first, unless
  // `home` is nullptr or empty. Then the dynamic linker searches. The runtime stays open, since it
  // can't be unloaded safely. On WL_UNSUPPORTED, the error says what was searched for, and where.
  // Throws std::bad_alloc.
  static Code open(const char* home, Acl* acl, wl_error_t* error);
};

// Sets *number to the driver's number of `device`, which counts devices that this process sees.
// `visible`: ASCEND_RT_VISIBLE_DEVICES; the number is its entry `device`. If it is nullptr or
// empty, the number is `device`. WL_INVALID_ARGUMENT: it names no such device.
Code driverDevice(const char* visible, int32_t device, uint32_t* number, wl_error_t* error);

}  // namespace windlass::acl
