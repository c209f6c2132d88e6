// SPDX-License-Identifier: Apache-2.0
// Kernels by index, and the work of each core of a device in an operation that the device runs.
#pragma once

#include <type_traits>

#include "windlass/in_line.h"
#include "windlass/offload.h"

namespace windlass {

template <class... K>
struct KernelList {
  // This list with more kernels appended.
  template <class... More>
  using And = KernelList<K..., More...>;

  // Index of a kernel, or kNobody if it is not in the list.
  template <class Of>
  WL_CORE static constexpr uint32_t indexOf() {
    uint32_t index = 0;
    bool found = false;
    ((found = found || std::is_same<Of, K>::value, index += found ? 0 : 1), ...);
    return found ? index : kNobody;
  }

  // Calls runInLine() for the kernel at `index`, and returns its result. Returns true if there is
  // no such kernel.
  WL_CORE static bool run(uint32_t index, const Launch& launch, const InLine& own, Position& at) {
    bool over = true;
    uint32_t each = 0;
    ((each++ == index ? void(over = runOne<K>(launch, own, at)) : void()), ...);
    return over;
  }

 private:
  template <class Of>
  WL_CORE static bool runOne(const Launch& launch, const InLine& own, Position& at) {
    const PhaseScope scope(launch);
    return runInLine<Of>(launch, own, at);
  }
};

// Continues the operation on one core. Returns true if it is complete, or if no rank waits for it
// any more.
template <class Kernels>
WL_CORE inline bool goOnOffloaded(const OffloadedOperation& operation, const Launch& launch,
                                  const InLine& own, Position& at) {
  const bool hasBegun = !operation.waitsForAll || awaitAllInLine(launch, own, at);
  if (hasBegun && Kernels::run(operation.kernel, launch, own, at)) return true;
  comm::Signal stop(reinterpret_cast<int32_t*>(operation.stop));
  return comm::TTEST(stop, static_cast<int32_t>(operation.stopValue), comm::WaitCmp::EQ);
}

}  // namespace windlass
