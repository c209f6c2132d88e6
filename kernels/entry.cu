// SPDX-License-Identifier: Apache-2.0
// What nvcc compiles of Windlass: all kernels for GPUs, as one that the host launches. A block of
// its grid is a core of a rank, as the device executor has them.
#include "native/isa/isa.h"
// After it, which marks functions of cores.
#include "kernels/all_offloaded.h"

namespace windlass {

using RunKernel = bool (*)(const Launch&, const InLine&, Position&);

template <class K>
WL_CORE_APART bool runKernel(const Launch& launch, const InLine& own, Position& at) {
  return runInLine<K>(launch, own, at);
}
// Each kernel is called by its place, so that it is compiled by itself.
template <class... K>
WL_CORE_TABLE RunKernel kRunKernels[] = {runKernel<K>...};

template <class... K>
struct CalledKernels {
  WL_CORE static bool run(uint32_t index, const Launch& launch, const InLine& own, Position& at) {
    return index >= sizeof...(K) || kRunKernels<K...>[index](launch, own, at);
  }
};
template <class... K>
CalledKernels<K...> called(KernelList<K...>);

// On the core's lead thread.
WL_CORE_APART inline void leadCore(const OffloadedOperation& operation, uint32_t core) {
  const uint64_t begun = cuda::clockNs();
  const Launch launch = operation.launchHere();
  const InLine line = operation.lineHere(core);
  Position at;
  using Kernels = decltype(called(AllOffloadedKernels()));
  while (!goOnOffloaded<Kernels>(operation, launch, line, at)) {
    if (operation.limitNs != 0 && cuda::clockNs() - begun > operation.limitNs) return;
  }
}

}  // namespace windlass

// `coresOfRank` blocks for each operation, which is one rank's; all run at a time.
extern "C" __global__ void __launch_bounds__(windlass::kCudaThreads, windlass::kCudaCores)
windlass_run(const windlass::OffloadedOperation* const* operations, uint32_t coresOfRank) {
  windlass::cuda::runBlock([&] {
    windlass::leadCore(*operations[blockIdx.x / coresOfRank], blockIdx.x % coresOfRank);
  });
}
