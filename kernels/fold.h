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

// Every row of dst = the fold of the rows of src, of `elements` elements of `dtype`. avg divides by
// `terms`. A premultiplied sum multiplies row s by factor(s).
template <class To, class From, class Factor>
WL_CORE inline void foldRows(const To& dst, const From& src, int64_t elements, DType dtype,
                             ReduceOp op, uint32_t terms, const Factor& factor, Stores stores) {
  FoldTile tile;
  TASSIGN(tile, 0);
  if (op == ReduceOp::kPremultipliedSum) {
    TFOLD_WEIGHTED(dst, src, factor, elements, dtype, tile, stores);
  } else {
    TFOLD(dst, src, elements, dtype, op, terms, tile, stores);
  }
}

// output(d) for d in 0..destinations = fold over the first `count` ranks s of `input(s)`, `bytes`
// bytes of launch.dtype.
template <class Input, class Output>
WL_CORE inline void foldFirst(const Launch& launch, uint32_t count, uint64_t bytes,
                              uint32_t destinations, Input input, Output output) {
  const auto elements = static_cast<int64_t>(bytes / sizeOf(launch.dtype));
  if (elements == 0) return;
  foldRows(
      rowsAt(destinations, output), rowsAt(count, input), elements, launch.dtype, launch.op, count,
      [&](uint32_t s) { return launch.factor(s); }, Stores::kByOperation);
}

// The same over all ranks.
template <class Input, class Output>
WL_CORE inline void foldRanks(const Launch& launch, uint64_t bytes, uint32_t destinations,
                              Input input, Output output) {
  foldFirst(launch, launch.ranks, bytes, destinations, input, output);
}

// dst = the fold of `count` rows of `elements` elements of `dtype`, on one core. avg divides by
// `terms`. A premultiplied sum has a factor for each row.
WL_CORE inline void foldAlone(void* dst, const void* const* src, uint32_t count, int64_t elements,
                              DType dtype, ReduceOp op, uint32_t terms, const double* factors) {
  const auto target = [&](uint32_t) { return dst; };
  const auto source = [&](uint32_t i) { return src[i]; };
  foldRows(
      rowsAt(1, target), rowsAt(count, source), elements, dtype, op, terms,
      [&](uint32_t i) { return factors[i]; }, Stores::kCached);
}

// Items of a kernel that folds one unit of each rank, in pieces of about kPieceBytes.
template <uint64_t kPieceBytes>
struct FoldItems : Items {
  WL_CORE static void plan(Launch& launch) { launch.cut(kPieceBytes, 256); }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
};

}  // namespace windlass
