// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter of matrices by columns: columns r of the reduction of all inputs become rank r's
// output.
//
// args     in   a matrix of launch.rows() rows, each `ranks` times as long as one of out
//          out  bytes: a matrix of as many rows
// phases   one: TFOLD of a piece of columns r over the inputs of all ranks
// signals  ENTER of every rank before inputs are read; DONE of every rank before return, since they
//          read this rank's input. Eager: a small input travels with ENTER; no DONE.
// order    canonical: left fold in ascending rank
#pragma once

#include "kernels/fold.h"
#include "kernels/pull.h"
#include "kernels/row_pieces.h"

namespace windlass {

struct ReduceScatterColumns : FoldItems<uint64_t{128} << 10> {
  WL_CORE static RowPieces cutOf(const Launch& launch) {
    return RowPieces::of(launch, uint64_t{128} << 10);
  }
  WL_CORE static void plan(Launch& launch) { launch.pieces = cutOf(launch).count; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const RowPieces cut = cutOf(launch);
    const RowPieces::Piece piece = cut.piece(launch, block);
    const uint64_t inRowBytes = launch.ranks * cut.rowBytes;
    const auto size = static_cast<int64_t>(sizeOf(launch.dtype));
    const auto input = [&](uint32_t s) {
      return launch.in(s) + piece.row * inRowBytes + rank * cut.rowBytes + piece.column;
    };
    uint8_t* const out = launch.out(rank) + piece.row * cut.rowBytes + piece.column;
    // Only folds of rows have factors.
    if (launch.op == ReduceOp::kPremultipliedSum) {
      for (uint64_t row = 0; row < piece.rows; ++row) {
        foldRanks(
            launch, piece.columns, 1,
            [&](uint32_t s) { return input(s) + row * inRowBytes; },
            [&](uint32_t) { return out + row * cut.rowBytes; });
      }
      return;
    }
    if (piece.rows == 0) return;
    const int64_t shape[] = {static_cast<int64_t>(piece.rows),
                             static_cast<int64_t>(piece.columns) / size};
    const int64_t inStrides[] = {static_cast<int64_t>(inRowBytes) / size, 1};
    const int64_t outStrides[] = {static_cast<int64_t>(cut.rowBytes) / size, 1};
    const auto source = [&](uint32_t s) {
      return StridedView{const_cast<uint8_t*>(input(s)), launch.dtype, 2, shape, inStrides};
    };
    const auto target = [&](uint32_t) {
      return StridedView{out, launch.dtype, 2, shape, outStrides};
    };
    FoldTile tile;
    TASSIGN(tile, 0);
    TFOLD(viewsAt(1, target), viewsAt(launch.ranks, source), launch.op, launch.dtype, tile);
  }
};

// Across processes; see kernels/pull.h.
struct ReduceScatterColumnsReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t, uint32_t to, uint32_t) {
    const uint64_t rowBytes = launch.bytes == 0 ? 0 : launch.bytes / launch.rows();
    return {to * rowBytes, 0, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kFoldsColumns, {}}, pulled, nullptr};
};

}  // namespace windlass
