// SPDX-License-Identifier: Apache-2.0
// The workers of a core without its kernels, which take longest to compile.
#include "native/isa/isa.h"

extern "C" __global__ void __launch_bounds__(windlass::kCudaThreads, windlass::kCudaCores)
windlass_loops(uint32_t* number) {
  windlass::cuda::runBlock([&] { *number = 1; },
                           [](const windlass::cuda::Job& job, uint32_t thread) {
                             windlass::cuda::workByCalls(job, thread);
                           });
}
