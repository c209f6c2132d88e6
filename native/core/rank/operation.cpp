// SPDX-License-Identifier: Apache-2.0
#include "native/core/rank/operation.h"

#include "native/base/cpu.h"
#include "native/base/target.h"

namespace windlass {

RankArgs Operation::placesOf(const Call& call, bool eager) const {
  const Place in = group_.placeOf(rank_, call.args.in, call.inExtent(group_.ranks()));
  return {in, group_.placeOf(rank_, call.args.out, call.outExtent(group_.ranks())),
          eager && call.args.aux == nullptr ? in : group_.placeOf(rank_, call.args.aux, 0)};
}

bool Operation::pulls(const Launch& launch) const {
  if (group_.hosts() != nullptr) return true;
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    const RankArgs& stated = launch.of(rank);
    if (stated.in.isOrdinary() || stated.out.isOrdinary()) return true;
  }
  return false;
}

void Operation::seePlaces() {
  ranksAre_ = kThreadsOnCores;
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    const RankArgs& stated = group_.lines(rank).entry[(sequence_ - 1) & 1].args;
    for (const Place place : {stated.in, stated.out, stated.aux})
      if (place.isOrdinary()) ranksAre_ = kProcessesOnCores;
  }
}

void Operation::fillEntry(const Call& call, bool rides, bool eager) {
  Entry& entry = own_.entry[sequence_ & 1];
  entry.core.store(own_.state.core.load(std::memory_order_relaxed), std::memory_order_relaxed);
  entry.descriptor = call.descriptor;
  if (group_.config().spansProcesses) {
    entry.args = placesOf(call, eager);
  } else {
    entry.args = {placeInAddressSpace(call.args.in), placeInAddressSpace(call.args.out),
                  placeInAddressSpace(call.args.aux)};
  }
  if (call.parts != nullptr) entry.args.aux = group_.block().placeOf(&stateParts(call));
  if (static_cast<ReduceOp>(call.descriptor.reduceOp()) == ReduceOp::kPremultipliedSum)
    __builtin_memcpy(&entry.args.aux.word, &call.factor, sizeof call.factor);
  if (rides) {
    unsigned char* copy =
        call.inBytes <= kInlineBytes ? entry.inlined : group_.block().eager(rank_, sequence_);
    if (call.inBytes <= kShortCopyBytes) {
      copyShort(copy, call.args.in, call.inBytes);
    } else {
      kTarget.copy(copy, call.args.in, call.inBytes);
    }
    entry.args.in = group_.block().placeOf(copy);
  }
}

const PartTable& Operation::stateParts(const Call& call) {
  const PartLists& lists = *call.parts;
  const uint64_t elementBytes = sizeOf(static_cast<DType>(call.descriptor.dtype()));
  PartTable& table = group_.block().parts(rank_, sequence_);
  table.largest = 0;
  // Fills the parts of the output or of the input, and sets `largest`. The input comes last, so
  // that its largest part counts if both have parts.
  const auto fill = [&](Part& (PartTable::*part)(uint32_t), const int64_t* counts,
                        const int64_t* offsets) {
    uint64_t end = 0;
    uint64_t largest = 0;
    for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
      const uint64_t bytes = static_cast<uint64_t>(counts[rank]) * elementBytes;
      const uint64_t start =
          offsets == nullptr ? end : static_cast<uint64_t>(offsets[rank]) * elementBytes;
      (table.*part)(rank) = {start, bytes};
      end = start + bytes;
      if (bytes > largest) largest = bytes;
    }
    table.largest = largest;
  };
  if (lists.outCounts != nullptr) fill(&PartTable::out, lists.outCounts, lists.outOffsets);
  if (lists.inCounts != nullptr) fill(&PartTable::in, lists.inCounts, lists.inOffsets);
  table.room = lists.room;
  table.refused = 0;
  return table;
}

bool Operation::agree(uint32_t a, uint32_t b, uint64_t sequence) const {
  const Descriptor& stated = group_.lines(a).entry[sequence & 1].descriptor;
  if (!(stated == group_.lines(b).entry[sequence & 1].descriptor)) return false;
  if (!stated.pairsParts()) return true;
  const PartTable& ofA = group_.block().parts(a, sequence);
  const PartTable& ofB = group_.block().parts(b, sequence);
  return ofA.in(b).bytes == ofB.out(a).bytes && ofB.in(a).bytes == ofA.out(b).bytes;
}

bool Operation::allStated(const Descriptor& descriptor) const {
  if (!(own_.entry[sequence_ & 1].descriptor == descriptor)) return false;
  for (uint32_t peer = 0; peer < group_.ranks(); ++peer) {
    if (!group_.entered(peer, sequence_) || !agree(rank_, peer, sequence_)) return false;
  }
  return true;
}

}  // namespace windlass
