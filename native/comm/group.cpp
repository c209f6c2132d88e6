// SPDX-License-Identifier: Apache-2.0
#include "native/comm/group.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

namespace windlass {
namespace {

// Memory is saturated by then.
constexpr uint32_t kMostBlocksByDefault = 8;

}  // namespace

Group::Group(const GroupConfig& config) : config_(config), made_(TickScale::Mark::now()) {
  const uint32_t spare = config.cores / config.ranks;
  if (config.deviceCores > 0) {
    config_.blocks = config.deviceCores;
  } else if (config.blocks == 0) config_.blocks = std::clamp(spare, 1u, kMostBlocksByDefault);
}

std::shared_ptr<Group> Group::create(const GroupConfig& config) {
  std::shared_ptr<Group> group(new (std::nothrow) Group(config));
  if (group == nullptr) return nullptr;
  const uint64_t lineBytes = sizeof(SharedLines) + sizeof(RankLines) * uint64_t{config.ranks};
  const uint64_t recorderBytes = sizeof(FlightRecorder) * uint64_t{config.ranks};
  const uint64_t blockBytes = (lineBytes + recorderBytes + kPage - 1) / kPage * kPage;
  const uint64_t stageBytes = 2 * group->stageBytes() * config.ranks;
  const uint64_t bytes = blockBytes + stageBytes + group->deviceLineStride() * config.ranks;
  // Not of the heap, which long-lived neighbours would keep from shrinking.
  group->mapping_ = mapMemory(bytes);
  if (group->mapping_ == nullptr) return nullptr;
  group->mapped_ = bytes;
  auto* base = static_cast<unsigned char*>(group->mapping_);
  group->shared_ = new (base) SharedLines();
  group->lines_ = reinterpret_cast<RankLines*>(base + sizeof(SharedLines));
  group->recorders_ = reinterpret_cast<FlightRecorder*>(base + lineBytes);
  group->stages_ = base + blockBytes;
  group->deviceLines_ = group->stages_ + stageBytes;
  const auto before = static_cast<uint32_t>(config.firstSequence - 1);
  for (uint32_t rank = 0; rank < config.ranks; ++rank) {
    RankLines& lines = *new (&group->lines_[rank]) RankLines();
    lines.entry[before & 1].sequence.store(before, std::memory_order_relaxed);
    lines.entry[config.firstSequence & 1].sequence.store(before - 1, std::memory_order_relaxed);
    for (Entry& entry : lines.entry) entry.core.store(-1, std::memory_order_relaxed);
    lines.state.sequence.store(before, std::memory_order_relaxed);
    lines.state.awaited.store(-1, std::memory_order_relaxed);
    new (&group->recorders_[rank]) FlightRecorder();
  }
  for (size_t at = 0; at < group->deviceLineStride() * config.ranks; at += kDeviceLineBytes)
    new (group->deviceLines_ + at) uint32_t(before << 8 | 0xff);
  group->parts_.resize(config.ranks);
  group->claimed_.resize(config.ranks);
  return group;
}

Group::~Group() {
  for (void* parts : parts_) ::operator delete(parts, std::align_val_t{kLine});
  if (mapping_ != nullptr) unmapMemory(mapping_, mapped_);
}

PartTable* Group::makeParts(uint32_t rank, uint64_t sequence) {
  if (parts_[rank] != nullptr) return static_cast<PartTable*>(parts_[rank]) + (sequence & 1);
  const uint64_t lists = uint64_t{config_.ranks} * sizeof(Part);
  const uint64_t bytes = 2 * (sizeof(PartTable) + 2 * lists);
  void* memory = ::operator new(bytes, std::align_val_t{kLine}, std::nothrow);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, bytes);
  auto* tables = static_cast<PartTable*>(memory);
  auto* list = reinterpret_cast<Part*>(tables + 2);
  for (uint32_t parity = 0; parity < 2; ++parity) {
    tables[parity].in = list + 2 * parity * config_.ranks;
    tables[parity].out = tables[parity].in + config_.ranks;
  }
  parts_[rank] = memory;
  return tables + (sequence & 1);
}

bool Group::claim(uint32_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (claimed_[rank]) return false;
  claimed_[rank] = true;
  return true;
}

void Group::unclaim(uint32_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  claimed_[rank] = false;
}

bool Group::leave(uint32_t rank) {
  if (lines_[rank].state.left.exchange(1, std::memory_order_seq_cst) != 0) return false;
  shared_->leavers.fetch_add(1, std::memory_order_seq_cst);
  wakeSleepers();
  return true;
}

void Group::publishFailure(const wl_error_t& error) {
  if (shared_->failing.exchange(1, std::memory_order_seq_cst) == 0) {
    record_ = error;
    shared_->failure.store(&record_, std::memory_order_seq_cst);
  } else {
    // Another thread is copying its record, of 2 KiB.
    while (failure() == nullptr) sched_yield();
  }
  wakeSleepers();
}

bool Group::quiescent() const {
  if (failure() == nullptr) return true;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    if (lines_[rank].state.busy.load(std::memory_order_seq_cst) != 0) return false;
  }
  return true;
}

int32_t Group::lastToEnter(uint32_t sequence) const {
  const TickScale scale = tickScale();
  int32_t last = -1;
  int64_t latest = 0;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    Recorded recorded;
    if (!recorders_[rank].find(sequence, scale, &recorded)) continue;
    if (recorded.enteredNs <= latest) continue;
    latest = recorded.enteredNs;
    last = static_cast<int32_t>(rank);
  }
  return last;
}

void Group::wakeSleepers() {
  if (shared_->sleepers.load(std::memory_order_seq_cst) == 0) return;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    Doorbell& bell = lines_[rank].bell;
    if (bell.sleeping.load(std::memory_order_seq_cst) == 0) continue;
    bell.ring.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell.ring), FUTEX_WAKE_PRIVATE, INT_MAX,
            nullptr, nullptr, 0);
  }
}

void Group::retire(std::shared_ptr<const void> memory) noexcept {
  if (quiescent()) return;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    retired_.push_back(std::move(memory));
  } catch (const std::bad_alloc&) {
    // Of both ends that are left, a leak is the one that no peer's store meets.
    alignas(std::shared_ptr<const void>) unsigned char kept[sizeof memory];
    new (kept) std::shared_ptr<const void>(std::move(memory));
    return;
  }
  // A rank that left since the look above saw nothing to drop.
  dropRetired();
}

void Group::dropRetired() {
  std::vector<std::shared_ptr<const void>> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  if (quiescent()) dropped.swap(retired_);
}

}  // namespace windlass
