// SPDX-License-Identifier: Apache-2.0
// A fold of one range of elements over the inputs of all ranks, in ascending rank: the canonical
// order.
#pragma once

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// Staging for targets that fold in on-core memory: of terms, and of their sum in f32.
using FoldTile = Tile<Loc::Vec, uint8_t, 1, 16384, BLayout::RowMajor, 1, DYNAMIC>;

// output(d) for d in 0..destinations = fold over ranks s of `input(s)`, `bytes` bytes of
// launch.dtype.
template <class Input, class Output>
WL_CORE inline void foldRanks(const Launch& launch, uint64_t bytes, uint32_t destinations,
                              Input input, Output output) {
  const auto elements = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
  if (elements == 0) return;
  FoldTile tile;
  TFOLD(rowsAt(destinations, output), rowsAt(launch.ranks, input), elements, launch.dtype,
        launch.op, launch.ranks, tile);
}

}  // namespace windlass
