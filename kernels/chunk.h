// SPDX-License-Identifier: Apache-2.0
// Redistribution of chunks: prepare, finalize, and both in one pass.
//
// args     aux  ChunkBlocks: the chunks whose target the rank is
// phases   one: the blocks of a rank's chunks. For each chunk
//          prepare:  slice -> reduce the Partial group in place, in the source dtype -> cast to the
//                    wire dtype, into a contiguous buffer
//          finalize: cast the buffer to the target dtype -> target slice
//          direct:   the same bits in one pass from source to target memory, nothing staged
// signals  ENTER of every rank before any source is read or target written; DONE of every rank
//          before return, since they read this rank's sources or write its targets
// order    a rank's DONE releases what its blocks wrote and acknowledges what they read
#pragma once

#include "native/isa/isa.h"
#include "windlass/kernel.h"

namespace windlass {

// A contiguous view of `buffer` with the item's shape; `strides` holds target.ndim values.
inline StridedView contiguous(const ChunkItem& item, void* buffer, DType dtype, int64_t* strides) {
  int64_t step = 1;
  for (uint32_t d = item.target.ndim; d-- > 0;) {
    strides[d] = step;
    step *= item.target.shape[d];
  }
  return {buffer, dtype, item.target.ndim, item.target.shape, strides};
}

// `wire` holds the item's elements in the wire dtype, contiguous. The sources stay as they are.
inline void chunkPrepare(const ChunkItem& item, void* wire) {
  int64_t strides[kMaxDims];
  const StridedView prepared = contiguous(item, wire, item.wire, strides);
  if (item.sourceCount == 1) {
    TMOVE_CVT(prepared, item.sources[0]);
  } else {
    TFOLD(&prepared, 1, item.sources, item.sourceCount, item.op);
  }
}

inline void chunkFinalize(const ChunkItem& item, void* wire) {
  int64_t strides[kMaxDims];
  TMOVE_CVT(item.target, contiguous(item, wire, item.wire, strides));
}

inline void chunkDirect(const ChunkItem& item) {
  if (item.sourceCount == 1) {
    TMOVE_CVT(item.target, item.sources[0], item.wire);
  } else {
    TFOLD(&item.target, 1, item.sources, item.sourceCount, item.op, item.wire);
  }
}

struct RedistributeDirect {
  static constexpr uint32_t phases(const Launch&) { return 1; }
  static constexpr bool kStaged = false;
  static const ChunkBlocks& chunks(const Launch& launch, uint32_t rank) {
    return *static_cast<const ChunkBlocks*>(launch.of(rank).aux);
  }
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return chunks(launch, rank).blocks;
  }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kEveryRank; }
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const ChunkBlocks& own = chunks(launch, rank);
    uint64_t bytes = 0;
    for (uint64_t i = own.first[block]; i < own.first[block + 1]; ++i) {
      chunkDirect(own.items[i]);
      bytes += own.items[i].targetBytes;
    }
    __atomic_fetch_add(own.movedBytes, bytes, __ATOMIC_RELAXED);
  }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace windlass
