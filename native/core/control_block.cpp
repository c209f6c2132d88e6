// SPDX-License-Identifier: Apache-2.0
#include "native/core/control_block.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "native/base/process.h"
#include "native/base/target.h"
#include "native/base/text.h"
#include "native/core/flight_recorder.h"
#include "native/memory/memory.h"

namespace windlass {
namespace {

// Raise this number with each change of the data that ranks exchange in an operation.
constexpr unsigned kOperations = 4;

// A hash of what must match between libraries whose ranks start together: the layout of a block,
// and the exchanges of operations.
uint64_t layoutOfThisLibrary() {
  char text[256];
  std::snprintf(text, sizeof text,
                "windlass %s for %s, ABI %u, operations %u, blocks of %zu, %zu, %zu, %zu, %zu, "
                "%zu, at %llu",
                WINDLASS_VERSION, kTarget.limits.name, WL_ABI_VERSION, kOperations,
                sizeof(SharedLines), sizeof(RankLines), sizeof(Member), sizeof(FlightRecorder),
                sizeof(OffloadLine), sizeof(ShrinkNote),
                static_cast<unsigned long long>(kInPage));
  uint64_t word = 0xcbf29ce484222325u;
  for (const char* at = text; *at != 0; ++at)
    word = (word ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
  return word;
}

// Copies a configuration that others may write at the same time. Returns true if the copy is valid
// for a control block.
bool copyConfig(const GroupConfig& from, GroupConfig* to) {
  unsigned char bytes[sizeof *to];
  std::memcpy(bytes, static_cast<const void*>(&from), sizeof bytes);
  if (bytes[offsetof(GroupConfig, adjustsThreads)] > 1 ||
      bytes[offsetof(GroupConfig, spansProcesses)] > 1) {
    return false;
  }
  std::memcpy(static_cast<void*>(to), bytes, sizeof bytes);
  const GroupConfig& config = *to;
  return config.ranks >= 1 && config.ranks <= WL_MAX_RANKS && config.cores >= 1 &&
         config.firstSequence >= 1 && config.blocks <= WL_MAX_BLOCKS && config.hosts >= 1 &&
         config.hosts <= config.ranks &&
         config.inLineCores <= WL_MAX_DEVICE_CORES && config.deadlineNs > 0;
}

// Never returns 0.
uint64_t newId() {
  static std::atomic<uint64_t> made{0};
  const uint64_t id = processWord() + made.fetch_add(1, std::memory_order_relaxed);
  return id == 0 ? 1 : id;
}

}  // namespace

// Only operations that need eager areas, parts and staging buffers access them.
ControlBlock::ControlBlock(void* memory, const GroupConfig& config)
    : base_(static_cast<unsigned char*>(memory)),
      ranks_(config.ranks),
      laneBytes_(MessageLane::bytes(config.messageSlots())),
      messageRoomBytes_(roundedUp(MessageRoom::bytes(config), kPage)),
      stageHalfBytes_(config.stageHalfBytes()),
      stageAreaBytes_(
          roundedUp(kInPage + 2 * stageHalfBytes_ + config.ranks * sizeof(StagePair), kPage)),
      eagerBytes_(config.eagerRoomBytes()),
      partsBytes_(roundedUp(PartTable::bytes(config.ranks), kLine)) {
  uint64_t end = 0;
  const auto take = [&](uint64_t bytes, uint64_t alignment) {
    const uint64_t start = roundedUp(end, alignment);
    end = start + bytes;
    return base_ + start;
  };
  const uint64_t ranks = config.ranks;
  take(sizeof(SharedLines), kPage);
  lines_ = reinterpret_cast<RankLines*>(take(sizeof(RankLines) * ranks, kLine));
  members_ = reinterpret_cast<Member*>(take(sizeof(Member) * ranks, kLine));
  recorders_ = reinterpret_cast<FlightRecorder*>(take(sizeof(FlightRecorder) * ranks, kLine));
  eager_ = take(kInPage + 2 * eagerBytes_ * ranks, kPage) + kInPage;
  coreLines_ = take(config.coreLineBytes() * ranks, kPage);
  parts_ = take(2 * partsBytes_ * ranks, kPage);
  const uint64_t offloading = config.offloadCores > 0 ? ranks : 0;
  offloadLines_ = reinterpret_cast<OffloadLine*>(take(sizeof(OffloadLine) * offloading, kLine));
  const uint64_t staging = config.spansProcesses ? ranks : 0;
  stageLines_ = reinterpret_cast<StageLine*>(take(sizeof(StageLine) * staging, kLine));
  const uint64_t noting = config.hosts > 1 ? ranks : 0;
  notes_ = reinterpret_cast<ShrinkNote*>(take(sizeof(ShrinkNote) * noting, kPage));
  const uint64_t later = roundedUp(end, kPage);
  lanes_ = take(laneBytes_ * ranks * ranks, kPage);
  messageRooms_ = take(messageRoomBytes_ * ranks, kPage);
  stages_ = take(stageAreaBytes_ * staging, kPage);
  bytes_ = roundedUp(end, kPage);
  laterBytes_ = bytes_ - later;
}

ControlBlock::ControlBlock(void* memory)
    : ControlBlock(memory, static_cast<SharedLines*>(memory)->config) {}

uint64_t ControlBlock::bytes(const GroupConfig& config) {
  return ControlBlock(nullptr, config).bytes_;
}

uint64_t ControlBlock::laterBytes(const GroupConfig& config) {
  return ControlBlock(nullptr, config).laterBytes_;
}

void ControlBlock::make(void* memory, const GroupConfig& config, const uint32_t* former,
                        uint64_t parent, const uint32_t* hosts) {
  const ControlBlock block(memory, config);
  SharedLines& shared = *new (memory) SharedLines();
  shared.config = config;
  const TickScale::Mark now = TickScale::Mark::now();
  shared.madeTicks = now.ticks;
  shared.madeNs = now.ns;
  if (config.spansProcesses) shared.id = newId();
  shared.parent = parent;
  shared.records[kFailureRecords - 1] =
      errorOf(WL_INTERNAL, "several threads ended, or stood still, while they wrote why");
  const auto before = static_cast<uint32_t>(config.firstSequence - 1);
  for (uint32_t rank = 0; rank < config.ranks; ++rank) {
    RankLines& lines = *new (&block.lines_[rank]) RankLines();
    lines.entry[before & 1].sequence.store(before, std::memory_order_relaxed);
    lines.entry[config.firstSequence & 1].sequence.store(before - 1, std::memory_order_relaxed);
    for (Entry& entry : lines.entry) entry.core.store(-1, std::memory_order_relaxed);
    lines.state.sequence.store(before, std::memory_order_relaxed);
    lines.state.awaited.store(-1, std::memory_order_relaxed);
    lines.state.sendsTo.store(-1, std::memory_order_relaxed);
    lines.state.core.store(-1, std::memory_order_relaxed);
    if (config.offloadCores > 0) new (&block.offloadLines_[rank]) OffloadLine();
    if (config.spansProcesses) new (&block.stageLines_[rank]) StageLine();
    new (&block.members_[rank]) Member();
    block.members_[rank].former = former == nullptr ? kNobody : former[rank];
    block.members_[rank].host = hosts == nullptr ? 0 : hosts[rank];
    new (&block.recorders_[rank]) FlightRecorder;  // zeroed, and unused until its rank calls
  }
  for (size_t at = 0; at < config.coreLineBytes() * config.ranks; at += kCoreLineBytes)
    new (block.coreLines_ + at) uint32_t(before << 8 | 0xff);
  shared.layout.store(layoutOfThisLibrary(), std::memory_order_release);
}

Code ControlBlock::open(const void* memory, uint64_t bytes, GroupConfig* config,
                        ControlBlock* block, wl_error_t* error) {
  const auto* shared = static_cast<const SharedLines*>(memory);
  if (bytes < sizeof *shared) {
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes are too few for a control block",
                text(bytes));
  }
  const uint64_t layout = shared->layout.load(std::memory_order_acquire);
  if (layout != layoutOfThisLibrary() || !copyConfig(shared->config, config)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "the memory holds no control block of this library (%s for %s); have one process "
                "lay it out first, with the same version for the same target",
                WINDLASS_VERSION, kTarget.limits.name);
  }
  // Callers of this function never write through *block.
  *block = ControlBlock(const_cast<void*>(memory), *config);
  if (bytes >= block->bytes_) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "a control block of %u ranks takes %llu bytes, not %llu",
              config->ranks, text(block->bytes_), text(bytes));
}

FlightRecorder& ControlBlock::recorder(uint32_t rank) const {
  return recorders_[rank];
}

}  // namespace windlass
