// SPDX-License-Identifier: Apache-2.0
// A fold of one range of elements over the inputs of all ranks, in ascending rank: the canonical
// order.
#pragma once

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// output(d) for d in 0..destinations = fold over ranks s of `input(s)`, `bytes` bytes of
// launch.dtype. What outgrows the caches streams, unless it takes the place of what has just been
// read.
template <class Input, class Output>
inline void foldRanks(const Launch& launch, uint64_t bytes, uint32_t destinations, Input input,
                      Output output) {
  const auto elements = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
  if (elements == 0) return;
  bool streams = launch.streams;
  for (uint32_t d = 0; streams && d < destinations; ++d) {
    for (uint32_t s = 0; streams && s < launch.ranks; ++s) streams = output(d) != input(s);
  }
  TFOLD(rowsAt(destinations, output), rowsAt(launch.ranks, input), elements, launch.dtype,
        launch.op, launch.ranks, streams ? Stores::kStreaming : Stores::kCached);
}

}  // namespace windlass
