// SPDX-License-Identifier: Apache-2.0
// The kernels of a library as nvcc compiles them: one GPU kernel, which calls each by its index in
// the library's table.
#pragma once

#include "windlass/on_gpu.h"

namespace windlass {

// Only their types are used, to name the kernels. They are never called.
template <class K>
KernelList<K> libraryKernel(const char* name);
template <class... K>
CalledKernels<K...> calledKernels(KernelList<K>...);

// Keeps only the first misuse of a launch. Several cores of the rank may call it at the same time.
WL_CORE_APART inline void takeMisuse(const Misuses* to, const Misuse& misuse) {
  auto* own = reinterpret_cast<OffloadedMisuses*>(const_cast<Misuses*>(to));
  if (atomicCAS(&own->told, 0u, 1u) == 0) own->first = misuse;
}

// Sets the core's tile memory and the receiver of its misuses. Runs on the core's lead thread. All
// cores of the rank write the same values to `call`.
WL_CORE_INLINE void beginLaunch(uint64_t call, uint32_t core) {
  constexpr uint64_t kTileBytes = kCudaLimits.tileBytes;
  auto* own = reinterpret_cast<OffloadedCall*>(call);
  own->misuses.taken.tell = takeMisuse;
  cuda::coreTiles() = {reinterpret_cast<unsigned char*>(own->tiles) + core * kTileBytes,
                       &own->misuses.taken};
}

template <class Kernels>
WL_CORE_INLINE void runLibrary(const OffloadedRanks& ranks, uint32_t coresOfRank) {
  cuda::runBlock(
      [&] {
        const OffloadedOperation& operation = *ranks.operation[blockIdx.x / coresOfRank];
        const uint32_t core = blockIdx.x % coresOfRank;
        beginLaunch(operation.call, core);
        leadCore<Kernels>(operation, core);
      },
      [](const cuda::Job& job, uint32_t thread) {
        if (job.kind == cuda::JobKind::kTile) {
          job.work(job, thread);
        } else {
          cuda::workByCalls(job, thread);
        }
      });
}

}  // namespace windlass

#define WINDLASS_KERNEL_LIBRARY(...)                                                               \
  using WindlassKernels = decltype(::windlass::calledKernels(__VA_ARGS__));                        \
  extern "C" __global__ void __launch_bounds__(::windlass::kCudaThreads, ::windlass::kCudaCores)   \
      windlass_run(const __grid_constant__ ::windlass::OffloadedRanks ranks,                       \
                   uint32_t coresOfRank) {                                                         \
    ::windlass::runLibrary<WindlassKernels>(ranks, coresOfRank);                                   \
  }
