// SPDX-License-Identifier: Apache-2.0
// What a block of a GPU runs, which is a core of a rank, as the device executor has them: kernels
// of a list, those of Windlass or those of a library.
#pragma once

#include "native/isa/isa.h"
// After it, which marks functions of cores.
#include "windlass/kernel_list.h"

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

// On the core's lead thread, one of `Kernels`, which calls them.
template <class Kernels>
WL_CORE_APART void leadCore(const OffloadedOperation& operation, uint32_t core) {
  const uint64_t begun = cuda::clockNs();
  auto* const counters = reinterpret_cast<DeviceCounters*>(operation.counters);
  const Launch launch = operation.launchHere();
  InLine line = operation.lineHere(core);
  // It stands until the rank's last core has left.
  if (counters != nullptr) line.sequence = cuda::readWord(&counters->over) + 1;
  Position at;
  while (!goOnOffloaded<Kernels>(operation, launch, line, at)) {
    if (operation.limitNs != 0 && cuda::clockNs() - begun > operation.limitNs) break;
  }
  if (!at.left && operation.report != 0) {
    cuda::storeRelease(reinterpret_cast<int32_t*>(operation.report),
                       static_cast<int32_t>(line.sequence));
  }
  if (at.left && core == 0 && operation.noteBytes != 0) {
    cuda::instructions::copyBytes(reinterpret_cast<void*>(operation.noteTo),
                                  reinterpret_cast<const void*>(operation.noteFrom),
                                  operation.noteBytes);
  }
  if (counters == nullptr || !cuda::isLastOf(&counters->ended, line.cores)) return;
  counters->ended = 0;
  counters->over = line.sequence;
}

}  // namespace windlass
