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
  auto* const counters = reinterpret_cast<DeviceCounters*>(operation.counters);
  const Launch launch = operation.launchHere();
  InLine line = operation.lineHere(core);
  // It stands until the rank's last core has left.
  if (counters != nullptr) line.sequence = cuda::readWord(&counters->over) + 1;
  Position at;
  using Kernels = decltype(called(AllOffloadedKernels()));
  while (!goOnOffloaded<Kernels>(operation, launch, line, at)) {
    if (operation.limitNs != 0 && cuda::clockNs() - begun > operation.limitNs) break;
  }
  if (!at.left && operation.report != 0) {
    cuda::storeRelease(reinterpret_cast<int32_t*>(operation.report),
                       static_cast<int32_t>(line.sequence));
  }
  if (counters == nullptr || !cuda::isLastOf(&counters->ended, line.cores)) return;
  counters->ended = 0;
  counters->over = line.sequence;
}

}  // namespace windlass

// `coresOfRank` blocks for each operation, which is one rank's; all run at a time.
extern "C" __global__ void __launch_bounds__(windlass::kCudaThreads, windlass::kCudaCores)
windlass_run(const __grid_constant__ windlass::OffloadedRanks ranks, uint32_t coresOfRank) {
  windlass::cuda::runBlock([&] {
    windlass::leadCore(*ranks.operation[blockIdx.x / coresOfRank], blockIdx.x % coresOfRank);
  });
}
