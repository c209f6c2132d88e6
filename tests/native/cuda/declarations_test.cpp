// SPDX-License-Identifier: Apache-2.0
// Our declarations of the driver's calls, types and values against those of the CUDA toolkit,
// where there is one.
#include <gtest/gtest.h>

#include "native/device/cuda/cuda.h"

namespace windlass::cuda {

#define WINDLASS_OURS(name, suffix, arguments) using Ours_##name = CuResult(*) arguments;
WINDLASS_CUDA_CALLS(WINDLASS_OURS)
#undef WINDLASS_OURS

template <class A, class B>
struct SameShape : std::false_type {};
template <class R, class... A, class S, class... B>
struct SameShape<R (*)(A...), S (*)(B...)> {
  static constexpr bool sameSizes() {
    if constexpr (sizeof...(A) == sizeof...(B)) {
      return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...);
    } else {
      return false;
    }
  }
  static constexpr bool value = sameSizes();
};

}  // namespace windlass::cuda

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace windlass::cuda {
namespace declarations_test {

#define WINDLASS_SAME(name, suffix, arguments) \
  static_assert(SameShape<Ours_##name, decltype(&name##suffix)>::value, #name #suffix);
WINDLASS_CUDA_CALLS(WINDLASS_SAME)
#undef WINDLASS_SAME

static_assert(sizeof(CuPhysicalProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(CuPhysicalProperties, handleTypes) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(CuPhysicalProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(CuPhysicalProperties, compression) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(CuAccess) == sizeof(CUmemAccessDesc));
static_assert(offsetof(CuAccess, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(offsetof(CuLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(CuCopy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(CuCopy2D, from.kind) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
static_assert(offsetof(CuCopy2D, from.device) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(CuCopy2D, from.pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(CuCopy2D, to.kind) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(CuCopy2D, to.device) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(CuCopy2D, to.pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(CuCopy2D, rowBytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(CuCopy2D, rows) == offsetof(CUDA_MEMCPY2D, Height));

static_assert(kCuOk == CUDA_SUCCESS && kCuOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kCuNotReady == CUDA_ERROR_NOT_READY && kCuNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kCuInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kCooperativeLaunch == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
static_assert(kVirtualMemory == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(kMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(kMemoryDevice == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(kUnifiedMemory == CU_MEMORYTYPE_UNIFIED);
static_assert(kHostMemory == CU_MEMORYTYPE_HOST && kDeviceMemory == CU_MEMORYTYPE_DEVICE);
static_assert(kCuInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kMostThreads == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kHostDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kAllocationPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(kLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(kHandleNone == CU_MEM_HANDLE_TYPE_NONE);
static_assert(kHandleFile == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(kFileHandles == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
static_assert(kAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kGranularityRecommended == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(kNativeAtomics == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);

TEST(CudaDeclarations, AreTheToolkits) {
  SUCCEED() << "as the compiler has seen";
}

}  // namespace declarations_test
}  // namespace windlass::cuda
#endif
