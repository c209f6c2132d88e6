// SPDX-License-Identifier: Apache-2.0
// A fold of one range of elements over the inputs of all ranks, in ascending rank: the canonical
// order.
#pragma once

#include <algorithm>

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// dst[0..destinations) = fold over ranks s of `input(s)`, `bytes` bytes of launch.dtype. What
// outgrows the caches streams, unless it takes the place of what has just been read.
template <class Input, class Output>
inline void foldRanks(const Launch& launch, uint64_t bytes, uint32_t destinations, Input input,
                      Output output) {
  const int64_t shape = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
  const int64_t stride = 1;
  if (shape == 0) return;
  auto* sources = static_cast<StridedView*>(__builtin_alloca(launch.ranks * sizeof(StridedView)));
  auto* targets = static_cast<StridedView*>(__builtin_alloca(destinations * sizeof(StridedView)));
  for (uint32_t s = 0; s < launch.ranks; ++s) {
    sources[s] = {const_cast<uint8_t*>(input(s)), launch.dtype, 1, &shape, &stride};
  }
  for (uint32_t d = 0; d < destinations; ++d)
    targets[d] = {output(d), launch.dtype, 1, &shape, &stride};
  const auto isRead = [&](const StridedView& target) {
    return std::any_of(sources, sources + launch.ranks,
                       [&](const StridedView& source) { return source.data == target.data; });
  };
  if (launch.streams && std::none_of(targets, targets + destinations, isRead)) {
    TFOLD(targets, destinations, sources, launch.ranks, launch.op, launch.dtype,
          Stores::kStreaming);
  } else {
    TFOLD(targets, destinations, sources, launch.ranks, launch.op);
  }
}

}  // namespace windlass
