// SPDX-License-Identifier: Apache-2.0
// Data that ranks of a transfer exchange, and that its kernel (kernels/chunk.h) uses: the boxes of
// its tensors, the tables that list them, and the version that moves. All of it is in words, so
// that it has the same meaning at any address.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// One box of one tensor, in words. The sources have equal shape and dtype; several sources are
// folded with `op`. The result passes through dtype `wire` into each target. The targets share a
// dtype and may belong to several ranks.
//
//   op | wire << 8 | ndim << 16 | phase << 32
//   targets | sources << 32
//   bytes of each target
//   extents[ndim]
//   for each target:  rank | dtype << 32, its Place, the Place of a signal that counts the items
//                     that have written it or none, strides[ndim]
//   for each source:  rank | dtype << 32, its Place, strides[ndim]
struct ChunkItem {
  static constexpr uint32_t kHeadWords = 3;
  static constexpr uint32_t kTargetWords = 3;  // and the strides
  static constexpr uint32_t kSourceWords = 2;  // and the strides

  const uint64_t* words;

  WL_CORE static constexpr uint64_t wordsOf(uint64_t ndim, uint64_t targets, uint64_t sources) {
    return kHeadWords + ndim + targets * (kTargetWords + ndim) + sources * (kSourceWords + ndim);
  }
  WL_CORE ReduceOp op() const { return static_cast<ReduceOp>(words[0] & 0xff); }
  WL_CORE DType wire() const { return static_cast<DType>(words[0] >> 8 & 0xff); }
  WL_CORE uint32_t ndim() const { return static_cast<uint32_t>(words[0] >> 16 & 0xffff); }
  WL_CORE uint32_t phase() const { return static_cast<uint32_t>(words[0] >> 32); }
  WL_CORE uint32_t targets() const { return static_cast<uint32_t>(words[1]); }
  WL_CORE uint32_t sources() const { return static_cast<uint32_t>(words[1] >> 32); }
  WL_CORE uint64_t bytes() const { return words[2]; }
  // Size in words.
  WL_CORE uint64_t size() const { return wordsOf(ndim(), targets(), sources()); }
  WL_CORE const int64_t* extents() const {
    return reinterpret_cast<const int64_t*>(words + kHeadWords);
  }
  // The words of one view.
  WL_CORE const uint64_t* target(uint32_t t) const {
    return words + kHeadWords + ndim() + uint64_t{t} * (kTargetWords + ndim());
  }
  WL_CORE const uint64_t* source(uint32_t s) const {
    return target(targets()) + uint64_t{s} * (kSourceWords + ndim());
  }
  // Fields of a view.
  WL_CORE static uint32_t rankOf(const uint64_t* view) { return static_cast<uint32_t>(view[0]); }
  WL_CORE static DType dtypeOf(const uint64_t* view) {
    return static_cast<DType>(view[0] >> 32 & 0xff);
  }
  WL_CORE static Place placeOf(const uint64_t* view) { return {view[1]}; }
  WL_CORE static Place signalOf(const uint64_t* target) { return {target[2]}; }
  WL_CORE static const int64_t* targetStrides(const uint64_t* target) {
    return reinterpret_cast<const int64_t*>(target + kTargetWords);
  }
  WL_CORE static const int64_t* sourceStrides(const uint64_t* source) {
    return reinterpret_cast<const int64_t*>(source + kSourceWords);
  }
};

// A rank's statement in an operation of a transfer. It is RankArgs::in and travels with ENTER.
struct Named {
  static constexpr int64_t kAny = -1;       // the version that others name
  static constexpr int64_t kNone = -2;      // the rank cannot take part
  static constexpr int64_t kFinished = -3;  // no version follows

  uint64_t transfer;
  int64_t version;
};

// Returns the version that all ranks name of one transfer, or kAny if they do not. named(rank) is a
// rank's statement.
template <class At>
WL_CORE int64_t agreedVersion(uint32_t ranks, const At& named) {
  int64_t version = Named::kAny;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const Named& own = named(rank);
    if (own.version < Named::kAny || own.transfer != named(0).transfer) return Named::kAny;
    if (own.version == Named::kAny) continue;
    if (version != Named::kAny && version != own.version) return Named::kAny;
    version = own.version;
  }
  return version;
}

// The items that a rank runs in one operation of a transfer, in words. It is RankArgs::aux.
//
//   phases | blocks << 32
//   words from the start of the table to the first item
//   for each block of each phase, n = phase * blocks + block: start of its first item, in words
//   from the first item; then the end of the last block's items
//
// Phases from `phases` on have no items.
struct ChunkTable {
  static constexpr uint32_t kHeadWords = 2;

  const uint64_t* words;

  WL_CORE uint32_t phases() const { return static_cast<uint32_t>(words[0]); }
  WL_CORE uint32_t blocks() const { return static_cast<uint32_t>(words[0] >> 32); }
  // Items begin at start(n) and end before start(n + 1).
  WL_CORE const uint64_t* start(uint64_t n) const {
    return words + words[1] + words[kHeadWords + n];
  }
};

}  // namespace windlass
