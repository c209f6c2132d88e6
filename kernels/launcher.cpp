// SPDX-License-Identifier: Apache-2.0
// The part of Windlass that the toolkit's compiler compiles: all kernels for the cores of a device,
// and the launcher that the host calls.
#include "kernels/offload.h"
#include "native/isa/ascend/fused.cpp"

namespace windlass {

// Copies the operation first: a core reads its own memory through plain pointers.
WL_CORE inline void runCore(__gm__ const uint64_t* given) {
  OffloadedOperation operation;
  auto* const own = reinterpret_cast<uint64_t*>(&operation);
  static_assert(sizeof operation % sizeof *own == 0, "the operation is whole words");
  for (uint32_t i = 0; i < sizeof operation / sizeof *own; ++i) own[i] = given[i];
  const Launch launch = operation.launchHere();
  const InLine line = operation.lineHere(static_cast<uint32_t>(get_block_idx()));
  Position at;
  while (!goOnOffloaded<OffloadedKernels>(operation, launch, line, at)) {
  }
}

}  // namespace windlass

__global__ AICORE void windlass_run(__gm__ uint8_t*, __gm__ uint8_t* operation) {
  WL_BEGIN_CORE();
  windlass::runCore(reinterpret_cast<__gm__ const uint64_t*>(operation));
}

// See native/base/target.h for its contract.
extern "C" __attribute__((visibility("hidden"))) int32_t windlass_launch(uint32_t cores,
                                                                         void* stream,
                                                                         void* context,
                                                                         void* operation) {
  WL_LAUNCH(windlass_run, cores, stream, static_cast<__gm__ uint8_t*>(context),
            static_cast<__gm__ uint8_t*>(operation));
  return 0;
}
