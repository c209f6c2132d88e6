// SPDX-License-Identifier: Apache-2.0
// Division of a part that is a matrix into pieces, for operations along columns.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// Pieces of some rows each, or of a part of the columns if one row is larger than a piece.
struct RowPieces {
  uint64_t rowBytes;
  uint64_t rowsEach;
  uint32_t across;  // pieces next to one another in a row
  uint32_t count;   // total number of pieces

  // A piece. `column` and `columns` are bytes.
  struct Piece {
    uint64_t row;
    uint64_t rows;  // 0: the piece is empty
    uint64_t column;
    uint64_t columns;
  };

  // Cuts into pieces of about `wanted` bytes.
  WL_CORE static RowPieces of(const Launch& launch, uint64_t wanted) {
    RowPieces cut = {0, 1, 1, 1};
    if (launch.bytes == 0) return cut;
    const uint64_t rows = launch.rows();
    cut.rowBytes = launch.bytes / rows;
    cut.across = pieceCount(cut.rowBytes, wanted, 64);
    uint32_t down = pieceCount(launch.bytes / cut.across, wanted, 64 / cut.across);
    cut.rowsEach = (rows + down - 1) / down;
    down = static_cast<uint32_t>((rows + cut.rowsEach - 1) / cut.rowsEach);
    cut.count = cut.across * down;
    return cut;
  }

  WL_CORE Piece piece(const Launch& launch, uint32_t index) const {
    const Part part = Part{0, rowBytes}.piece(index % across, across);
    const uint64_t first = index / across * rowsEach;
    if (part.bytes == 0 || first >= launch.rows()) return {0, 0, 0, 0};
    const uint64_t left = launch.rows() - first;
    return {first, left < rowsEach ? left : rowsEach, part.start, part.bytes};
  }
};

}  // namespace windlass
