// SPDX-License-Identifier: Apache-2.0
// All-gather of matrices by columns: the columns of rank s's input become columns s of every rank's
// output, side by side.
//
// args     in   bytes: a matrix of launch.rows() rows
//          out  a matrix of as many rows, each `ranks` times as long
// phases   one: TPUT of a piece of the rank's input into the output of every rank, one after
//          the other, so that it is read from memory once
//          eager:  TGET of each rank's input from the copy that travels with ENTER
// signals  ENTER of the peer before its output is written; DONE of every rank before return, since
//          they write this rank's output. Eager: ENTER of the peer before its copy is read; no
//          DONE.
// order    the moves of an item are released by its owner's DONE and acquired by the wait for it
#pragma once

#include "kernels/all_gather.h"
#include "kernels/pull.h"

namespace windlass {

// Rows of bytes. Each row begins `stride` bytes after the one before.
template <typename T>
using Matrix = GlobalTensor<T, Shape<1, 1, 1, DYNAMIC, DYNAMIC>,
                            Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>>;

template <typename T>
WL_CORE inline Matrix<T> matrix(T* data, uint64_t rows, uint64_t columns, uint64_t stride) {
  const auto n = static_cast<int64_t>(rows);
  const auto step = static_cast<int64_t>(stride);
  return Matrix<T>(data, Shape<1, 1, 1, DYNAMIC, DYNAMIC>(n, static_cast<int64_t>(columns)),
                   Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>(n * step, n * step, n * step,
                                                                 step));
}

// Division of a matrix into pieces: some rows each, or a part of the columns if one row is larger
// than a piece.
struct RowPieces {
  uint64_t rowBytes;
  uint64_t rowsEach;
  uint32_t across;  // pieces next to one another in a row
  uint32_t count;   // total number of pieces

  WL_CORE static RowPieces of(const Launch& launch) {
    RowPieces cut = {0, 1, 1, 1};
    if (launch.bytes == 0) return cut;
    const uint64_t rows = launch.rows();
    cut.rowBytes = launch.bytes / rows;
    cut.across = pieceCount(cut.rowBytes, kGatheredPiece, 64);
    uint32_t down = pieceCount(launch.bytes / cut.across, kGatheredPiece, 64 / cut.across);
    cut.rowsEach = (rows + down - 1) / down;
    down = static_cast<uint32_t>((rows + cut.rowsEach - 1) / cut.rowsEach);
    cut.count = cut.across * down;
    return cut;
  }
};

struct AllGatherColumns : PeerItems<kGatheredPiece> {
  WL_CORE static void plan(Launch& launch) { launch.pieces = RowPieces::of(launch).count; }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const Box box(launch, rank, peer(launch, rank, block), piece(launch, block));
    if (box.rows == 0) return;
    Matrix<uint8_t> to = box.target();
    Matrix<const uint8_t> from = box.source();
    putStaged(to, from, box.columns);
  }

  // A piece of the input of rank `from`, and its address in the output of rank `to`.
  struct Box {
    uint8_t* out;
    const uint8_t* in;
    uint64_t rows = 0;
    uint64_t columns = 0;
    uint64_t rowBytes;
    uint64_t outRowBytes;

    WL_CORE Box(const Launch& launch, uint32_t from, uint32_t to, uint32_t piece) {
      const RowPieces cut = RowPieces::of(launch);
      rowBytes = cut.rowBytes;
      outRowBytes = launch.ranks * rowBytes;
      const Part across = Part{0, rowBytes}.piece(piece % cut.across, cut.across);
      const uint64_t first = piece / cut.across * cut.rowsEach;
      in = launch.in(from) + first * rowBytes + across.start;
      out = launch.out(to) + first * outRowBytes + from * rowBytes + across.start;
      if (across.bytes == 0 || first >= launch.rows()) return;
      const uint64_t left = launch.rows() - first;
      rows = left < cut.rowsEach ? left : cut.rowsEach;
      columns = across.bytes;
    }
    WL_CORE Matrix<uint8_t> target() const { return matrix(out, rows, columns, outRowBytes); }
    WL_CORE Matrix<const uint8_t> source() const { return matrix(in, rows, columns, rowBytes); }
  };
};

struct AllGatherColumnsPull : AllGatherColumns {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const Box box(launch, peer(launch, rank, block), rank, piece(launch, block));
    if (box.rows == 0) return;
    Matrix<uint8_t> to = box.target();
    Matrix<const uint8_t> from = box.source();
    getStaged(to, from, box.columns);
  }
};

// Across processes; see kernels/pull.h.
struct AllGatherColumnsReads {
  WL_CORE static Pulled pulled(const Launch& launch, uint32_t from, uint32_t, uint32_t) {
    const uint64_t rowBytes = launch.bytes == 0 ? 0 : launch.bytes / launch.rows();
    return {0, from * rowBytes, launch.bytes};
  }
  static constexpr PullForm kForm = {1, {kPullsColumns, {}}, pulled, nullptr};
};

}  // namespace windlass
