// SPDX-License-Identifier: Apache-2.0
// Memory that a rank's cores may access in an operation, on targets that check it.

#include "native/base/extent.h"
#include "native/core/executor/in_line_executor.h"
#include "windlass/chunk.h"
#include "windlass/kernel_table.h"

namespace windlass {
namespace {

// Adds the ordinary memory that a view of an item covers, if it is memory of `rank`.
void addView(const Launch& launch, const ChunkItem& item, const uint64_t* view,
             const int64_t* strides, uint32_t rank, std::vector<Reach>* all) {
  const Place place = ChunkItem::placeOf(view);
  if (!place.isOrdinary() || ChunkItem::rankOf(view) != rank) return;
  int64_t bytes = 0;
  extentOf(item.ndim(), item.extents(), strides, sizeOf(ChunkItem::dtypeOf(view)), &bytes);
  if (bytes > 0)
    all->push_back({rank, launch.at<const void>(rank, place), static_cast<uint64_t>(bytes), false});
}

// Adds the memory outside windows that a transfer's items name: this rank's own tensors, and their
// targets' counters, which hosts read.
void addItems(const Launch& launch, const ChunkTable& table, uint32_t rank,
              std::vector<Reach>* all) {
  const uint64_t* end = table.start(uint64_t{table.phases()} * table.blocks());
  for (ChunkItem item = {table.start(0)}; item.words != end; item.words += item.size()) {
    for (uint32_t s = 0; s < item.sources(); ++s)
      addView(launch, item, item.source(s), ChunkItem::sourceStrides(item.source(s)), rank, all);
    for (uint32_t t = 0; t < item.targets(); ++t) {
      const uint64_t* target = item.target(t);
      addView(launch, item, target, ChunkItem::targetStrides(target), rank, all);
      const Place signal = ChunkItem::signalOf(target);
      if (!signal.isOrdinary()) continue;
      const uint32_t owner = ChunkItem::rankOf(target);
      all->push_back({owner, launch.at<const void>(owner, signal), sizeof(int32_t), true});
    }
  }
}

}  // namespace

std::vector<Reach> reach(Comm& comm, const Call& call, const Launch& launch) {
  const Group& group = comm.group();
  const uint32_t own = comm.rank();
  const uint64_t sequence = comm.operation().wholeSequence();
  std::vector<Reach> all;
  const ControlBlock& block = group.block();
  const GroupConfig& config = group.config();
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    const unsigned char* lines = block.coreLines() + rank * config.coreLineBytes();
    all.push_back({rank, lines, config.coreLineBytes(), true});
    all.push_back({rank, &block.parts(rank, sequence), PartTable::bytes(launch.ranks), true});
    all.push_back({rank, &block.lines(rank), sizeof(RankLines), true});
    all.push_back({rank, block.eager(rank, sequence), config.eagerRoomBytes(), true});
    // A library's kernel stays inside its arguments.
    if (launch.call != nullptr) continue;
    group.windows().forEach([&](const WindowBase& window, uint64_t bytes) {
      all.push_back({rank, reinterpret_cast<const void*>(window.segment(rank)), bytes, true});
    });
  }
  if (call.phases > 0)
    addItems(launch, {static_cast<const uint64_t*>(call.args.aux)}, own, &all);
  const auto addOwn = [&](const void* data, uint64_t bytes) {
    if (data == nullptr || bytes == 0) return;
    if (group.placeOf(own, data, bytes).isOrdinary())
      all.push_back({own, data, bytes, false});
  };
  if (launch.call != nullptr) {
    const KernelEntry& kernel = *launch.call->kernel;
    for (uint32_t i = 0; i < kernel.argumentCount; ++i) {
      const Argument& argument = launch.argument(i);
      const uint64_t bytes = argument.elements * sizeOf(argument.dtype);
      const ArgumentEntry& entry = kernel.arguments[i];
      if (bytes == 0 || entry.kind == ArgumentEntry::kScalar) continue;
      const char* unwritten = entry.isWritten != 0 ? nullptr : entry.name;
      if (entry.kind == ArgumentEntry::kTensor) {
        all.push_back({own, argument.at<void>(own), bytes, false, unwritten});
        continue;
      }
      for (uint32_t rank = 0; rank < launch.ranks; ++rank)
        all.push_back({rank, argument.at<void>(rank), bytes, true, unwritten});
    }
    return all;
  }
  addOwn(call.args.in, call.inExtent(group.ranks()));
  addOwn(call.args.out, call.outExtent(group.ranks()));
  return all;
}

}  // namespace windlass
