// SPDX-License-Identifier: Apache-2.0
// The part of Windlass that nvcc compiles: all kernels for GPUs, as one that the host launches.
#include "windlass/on_gpu.h"
// Must follow windlass/on_gpu.h, which defines WL_CORE for separate cores.
#include "kernels/all_offloaded.h"

// Runs `coresOfRank` blocks for each operation, which is one rank's. All run at the same time.
extern "C" __global__ void __launch_bounds__(windlass::kCudaThreads, windlass::kCudaCores)
windlass_run(const __grid_constant__ windlass::OffloadedRanks ranks, uint32_t coresOfRank) {
  using Kernels = decltype(windlass::called(windlass::AllOffloadedKernels()));
  windlass::cuda::runBlock(
      [&] {
        windlass::leadCore<Kernels>(*ranks.operation[blockIdx.x / coresOfRank],
                                    blockIdx.x % coresOfRank);
      },
      [](const windlass::cuda::Job& job, uint32_t thread) {
        windlass::cuda::workByCalls(job, thread);
      });
}
