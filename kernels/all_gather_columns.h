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
#include "kernels/row_pieces.h"

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

struct AllGatherColumns : PeerItems<kGatheredPiece> {
  WL_CORE static RowPieces cutOf(const Launch& launch) {
    return RowPieces::of(launch, kGatheredPiece);
  }
  WL_CORE static void plan(Launch& launch) { launch.pieces = cutOf(launch).count; }
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
    uint64_t rows;
    uint64_t columns;
    uint64_t rowBytes;
    uint64_t outRowBytes;

    WL_CORE Box(const Launch& launch, uint32_t from, uint32_t to, uint32_t piece) {
      const RowPieces cut = cutOf(launch);
      const RowPieces::Piece of = cut.piece(launch, piece);
      rowBytes = cut.rowBytes;
      outRowBytes = launch.ranks * rowBytes;
      in = launch.in(from) + of.row * rowBytes + of.column;
      out = launch.out(to) + of.row * outRowBytes + from * rowBytes + of.column;
      rows = of.rows;
      columns = of.columns;
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
