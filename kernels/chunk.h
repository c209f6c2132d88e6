// SPDX-License-Identifier: Apache-2.0
// Redistribution of chunks, in every mode: phases of items. Each item moves one or several strided
// views to one or several others in one pass.
//
// args     in   Named: the transfer and the version; data moves only if all ranks name the same
//          aux  ChunkTable: the items that the rank runs, by phase
// phases   as many as the transfer's plan has, cut into operations of at most kMostPhases
//          direct:    one item moves source memory to target memory: slice -> reduce the Partial
//                     group in the source dtype -> cast to the wire dtype -> cast to the target's;
//                     one of the ranks with the same sources moves the data for all of them
//          staged:    prepare, in phase k: slice -> reduce -> cast to the wire dtype -> staging
//                     buffer; finalize, in phase k + 1: staging buffer -> cast to the target dtype
//                     -> slice. So phase k + 1 prepares one bucket while it finalizes another
//          gathered:  a root prepares the whole tensor in phase k, every target copies it to
//                     its own staging buffer in k + 1 and takes its slice out in k + 2
// signals  ENTER of every rank before any source is read or target written; in each phase the
//          previous one of every rank, which wrote the staging buffers that this phase reads, and
//          read those that it overwrites; DONE of every rank before return, since they read this
//          rank's sources and write its targets
// order    a rank's DONE releases what its items wrote and acknowledges what they read
#pragma once

#include "kernels/fold.h"
#include "native/isa/isa.h"
#include "windlass/chunk.h"

namespace windlass {

// Addresses of an item's targets and sources in this process, and of the signals that count the
// moves to each target.
struct ChunkViews {
  const Launch& launch;
  const ChunkItem& item;

  WL_CORE StridedView target(uint32_t t) const {
    return viewOf(item.target(t), ChunkItem::targetStrides(item.target(t)));
  }
  WL_CORE StridedView source(uint32_t s) const {
    return viewOf(item.source(s), ChunkItem::sourceStrides(item.source(s)));
  }
  // Address of the signal that counts moves to target `t`, which is not a staging buffer.
  WL_CORE int32_t* signal(uint32_t t) const {
    const uint64_t* view = item.target(t);
    return launch.at<int32_t>(ChunkItem::rankOf(view), ChunkItem::signalOf(view));
  }
  WL_CORE bool isStaged() const { return ChunkItem::signalOf(item.target(0)).isNone(); }

 private:
  WL_CORE StridedView viewOf(const uint64_t* view, const int64_t* strides) const {
    void* data = launch.at<void>(ChunkItem::rankOf(view), ChunkItem::placeOf(view));
    return {data, ChunkItem::dtypeOf(view), item.ndim(), item.extents(), strides};
  }
};

// Moves an item, rounded to the wire dtype in between. The sources do not change. Data in a staging
// buffer is read in the next phase.
template <class Threads = CoreThreads>
WL_CORE inline void moveChunk(const Launch& launch, const ChunkItem& item) {
  const ChunkViews views = {launch, item};
  const auto target = [&](uint32_t t) { return views.target(t); };
  const auto source = [&](uint32_t s) { return views.source(s); };
  const bool isStaged = views.isStaged();
  const Stores stores = isStaged ? Stores::kCached : Stores::kByOperation;
  FoldTile tile;
  TASSIGN(tile, 0);
  if (item.sources() == 1 && item.targets() == 1) {
    TMOVE_CVT(target(0), source(0), item.wire(), tile, stores);
  } else if (item.sources() == 1) {
    TMOVE_CVT(viewsAt(item.targets(), target), source(0), item.wire(), tile, stores);
  } else {
    TFOLD(viewsAt(item.targets(), target), viewsAt(item.sources(), source), item.op(), item.wire(),
          tile, stores);
  }
  if (isStaged) return;
  if constexpr (Threads::kMoveApart) {
    Threads::countMoves(item.targets(), [&](uint32_t t) { return views.signal(t); });
  } else {
    pipe_barrier(PIPE_ALL);
    dsb(DSB_DDR);
    for (uint32_t t = 0; t < item.targets(); ++t) {
      comm::Signal signal(views.signal(t));
      comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
    }
  }
}

struct Redistribute : Items {
  WL_CORE static uint32_t phases(const Launch& launch) { return launch.phases; }
  WL_CORE static ChunkTable table(const Launch& launch, uint32_t rank) {
    return {launch.at<const uint64_t>(rank, launch.of(rank).aux)};
  }
  WL_CORE static bool agrees(const Launch& launch) {
    const auto named = [&](uint32_t rank) -> const Named& {
      return *launch.at<const Named>(rank, launch.of(rank).in);
    };
    return agreedVersion(launch.ranks, named) != Named::kAny;
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return table(launch, rank).blocks();
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    const ChunkTable own = table(launch, rank);
    if (k >= own.phases()) return;
    const uint64_t n = uint64_t{k} * own.blocks() + block;
    const uint64_t* end = own.start(n + 1);
    ChunkItem item = {own.start(n)};
    for (; item.words != end; item.words += item.size()) moveChunk(launch, item);
  }
};

}  // namespace windlass
