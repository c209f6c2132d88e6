// SPDX-License-Identifier: Apache-2.0
// A fold of one range of elements over the inputs of all ranks, in ascending rank (the canonical
// order), and the items of operations that consist of such folds.
#pragma once

#include "kernels/items.h"
#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// Staging buffer for targets that fold and convert in on-core memory: room for terms, their sum and
// the rounded result, each twice.
using FoldTile = Tile<TileType::Vec, uint8_t, 1, 147456>;

// output(d) for d in 0..destinations = fold over ranks s of `input(s)`, `bytes` bytes of
// launch.dtype.
template <class Input, class Output>
WL_CORE inline void foldRanks(const Launch& launch, uint64_t bytes, uint32_t destinations,
                              Input input, Output output) {
  const auto elements = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
  if (elements == 0) return;
  FoldTile tile;
  TASSIGN(tile, 0);
  TFOLD(rowsAt(destinations, output), rowsAt(launch.ranks, input), elements, launch.dtype,
        launch.op, launch.ranks, tile);
}

// dst = the fold of `count` rows of `elements` elements of `dtype`, on one core. avg divides by
// `terms`.
WL_CORE inline void foldAlone(void* dst, const void* const* src, uint32_t count, int64_t elements,
                              DType dtype, ReduceOp op, uint32_t terms) {
  const auto target = [&](uint32_t) { return dst; };
  const auto source = [&](uint32_t i) { return src[i]; };
  FoldTile tile;
  TASSIGN(tile, 0);
  TFOLD(rowsAt(1, target), rowsAt(count, source), elements, dtype, op, terms, tile,
        Stores::kCached);
}

// Items of a kernel that folds one unit of each rank, in pieces of about kPieceBytes.
template <uint64_t kPieceBytes>
struct FoldItems : Items {
  WL_CORE static void plan(Launch& launch) { launch.cut(kPieceBytes, 256); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
};

}  // namespace windlass
