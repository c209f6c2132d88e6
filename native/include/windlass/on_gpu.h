// SPDX-License-Identifier: Apache-2.0
// Code of a GPU block, which is a core of a rank in the in-line executor. It runs kernels of a
// list, from Windlass or from a library.
#pragma once

#include "native/isa/isa.h"
// Must follow isa.h, which defines WL_CORE for separate cores.
#include "windlass/kernel_list.h"

namespace windlass {

using RunKernel = bool (*)(const Launch&, const InLine&, Position&);

template <class K>
WL_CORE_APART bool runKernel(const Launch& launch, const InLine& own, Position& at) {
  return runInLine<K>(launch, own, at);
}
// Calls each kernel through a table, so that each is compiled separately.
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

// Runs on the core's lead thread, with one of `Kernels`.
template <class Kernels>
WL_CORE_APART void leadCore(const OffloadedOperation& operation, uint32_t core) {
  const uint64_t begun = cuda::clockNs();
  auto* const counters = reinterpret_cast<DeviceCounters*>(operation.counters);
  const Launch launch = operation.launchHere();
  InLine line = operation.lineHere(core);
  // The value is stable until the rank's last core has left.
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
