// SPDX-License-Identifier: Apache-2.0
#include "native/core/group.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <new>
#include <tuple>
#include <utility>

#include "native/base/clock.h"
#include "native/base/cpu.h"
#include "native/base/process.h"
#include "native/base/target.h"
#include "native/core/watch.h"
#include "native/memory/memory.h"

namespace windlass {
namespace {

// More threads do not help, because this number already saturates memory.
constexpr uint32_t kMostBlocksByDefault = 8;
// Time for another thread to write a failure record.
constexpr int64_t kRecordLimitNs = 100'000'000;

// An order of processes that all groups share.
auto orderOf(const wl_process_t& process) {
  return std::tuple(process.pid_namespace, process.pid, process.started);
}

}  // namespace

Group::Group(const GroupConfig& config)
    : config_(config), claimed_(config.ranks) {}

void Group::place(void* block) {
  block_ = ControlBlock(block);
  windows_.place(block_);
}

// If each rank is an emulated device, its cores run all operations in line and reach only the
// windows of its peers. If each rank has a device, the device runs collectives.
void Group::suitTarget(GroupConfig* config) {
  if (kTarget.limits.offloadCores > 0 && config->offloadCores == 0) {
    config->offloadCores =
        config->inLineCores == 0 ? kTarget.limits.offloadCores : config->inLineCores;
    config->inLineCores = 0;
  }
  if (!kTarget.limits.isolatesRanks) return;
  config->spansProcesses = true;
  if (config->inLineCores == 0) {
    constexpr uint32_t kMost = WL_MAX_DEVICE_CORES;
    config->inLineCores = std::clamp(config->blocks, 1u, kMost);
  }
}

std::shared_ptr<Group> Group::create(const GroupConfig& config) {
  std::shared_ptr<Group> group = reserve(config);
  group->settle(config.ranks);
  return group;
}

std::shared_ptr<Group> Group::reserve(const GroupConfig& asked) {
  GroupConfig config = asked;
  suitTarget(&config);
  std::shared_ptr<Group> group(new Group(config));
  // Not on the heap, where long-lived neighbours would prevent it from shrinking.
  group->mapped_ = ControlBlock::bytes(config);
  group->mapping_ = mapMemory(group->mapped_, MAP_PRIVATE | MAP_NORESERVE);
  if (group->mapping_ == nullptr) throw std::bad_alloc();
  if (config.offloadCores > 0) group->devices_ = Devices::make(config.ranks);
  return group;
}

void Group::comeFrom(const Group& whole, const std::vector<uint32_t>& members) {
  for (uint32_t rank = 0; rank < members.size(); ++rank) member(rank).former = members[rank];
  keepDevices(whole);
}

void Group::keepDevices(const Group& whole) {
  for (uint32_t rank = 0; devices_ != nullptr && rank < ranks(); ++rank)
    devices_->keep(rank, *whole.devices_, member(rank).former);
}

void Group::decide(GroupConfig* config) {
  suitTarget(config);
  if (config->inLineCores > 0) {
    config->blocks = config->inLineCores;
  } else if (config->blocks == 0) {
    config->blocks = std::clamp(config->cores / config->ranks, 1u, kMostBlocksByDefault);
  }
  config->streamingBytes = kTarget.limits.streamingBytes * config->cores;
}

void Group::settle(uint32_t ranks) {
  config_.ranks = ranks;
  if (devices_ != nullptr) devices_->settle(ranks);
  decide(&config_);
  ControlBlock::make(mapping_, config_);
  place(mapping_);
}

std::shared_ptr<Group> Group::attach(void* block, std::shared_ptr<const void> memory,
                                     PeerMemoryUse use) {
  std::shared_ptr<Group> group(new Group(static_cast<const SharedLines*>(block)->config));
  group->peerMemoryUse_ = use;
  group->place(block);
  if (group->config_.offloadCores > 0)
    group->devices_ = Devices::ofShared(group->shared().id, group->ranks());
  group->memory_ = std::move(memory);
  return group;
}

Group::~Group() {
  watch_.reset();  // it reports on hosts
  // The hosts' thread uses hosts_ of this group until the thread has ended.
  if (hosts_ != nullptr && hosts_->isConnected()) hosts_->close();
  hosts_.reset();
  // Destructors of retired memory use the group once more.
  retired_.clear();
  if (mapping_ != nullptr) unmapMemory(mapping_, mapped_);
}

uint32_t Group::firstBeside(uint32_t rank) const {
  uint32_t first = 0;
  while (member(first).host != member(rank).host) ++first;
  return first;
}

void Group::dropWindow(uint32_t window) {
  // Tells other hosts before the number can belong to another window.
  if (hosts_ != nullptr) hosts_->tellDropped(window);
  windows_.drop(window);
}

uint32_t Group::takeWindow() {
  sweepWindows();
  return windows_.take(config_.ranks);
}

void Group::sweepWindows() {
  // Ranks of other hosts may put into windows while a wire exists.
  windows_.sweep(failure() != nullptr && hosts_ == nullptr && quiescent());
}

bool Group::isHere(uint32_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  return claimed_[rank];
}

wl_process_t Group::processOf(uint32_t rank) const {
  const Member& told = member(rank);
  return {sizeof(wl_process_t), told.pid.load(std::memory_order_acquire),
          told.started.load(std::memory_order_relaxed),
          told.pidNamespace.load(std::memory_order_relaxed)};
}

bool Group::shareProcess(uint32_t a, uint32_t b) const {
  return kTarget.limits.isolatesRanks ? a == b : liveTogether(a, b);
}

bool Group::liveTogether(uint32_t a, uint32_t b) const {
  if (!config_.spansProcesses || a == b) return true;
  if (member(a).host != member(b).host) return false;
  return orderOf(processOf(a)) == orderOf(processOf(b));
}

bool Group::isProcessBefore(uint32_t a, uint32_t b) const {
  if (!config_.spansProcesses || a == b) return false;
  return orderOf(processOf(a)) < orderOf(processOf(b));
}

PeerMemoryUse Group::peerMemoryUse() const {
  return kTarget.limits.isolatesRanks ? PeerMemoryUse::kStage : peerMemoryUse_;
}

Code Group::peerMemory(uint32_t rank, const PeerMemory** memory, wl_error_t* error) {
  uint32_t first = 0;
  while (!shareProcess(first, rank)) ++first;
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = peerMemories_.find(first); found != peerMemories_.end()) {
    *memory = found->second.get();
    return WL_OK;
  }
  std::shared_ptr<const PeerMemory> opened;
  const uint64_t probe = block_.stageLine(first).probe.load(std::memory_order_acquire);
  const Code code = openPeerMemory(processOf(first), probe, &opened, error);
  if (code != WL_OK) return code;
  *memory = peerMemories_.emplace(first, std::move(opened)).first->second.get();
  return WL_OK;
}

Code Group::claim(uint32_t rank, wl_error_t* error) {
  if (rank >= config_.ranks)
    return fail(error, WL_INVALID_ARGUMENT, "rank %u is not in 0 to %u", rank, config_.ranks - 1);
  std::lock_guard<std::mutex> lock(mutex_);
  wl_process_t process = {};
  process.struct_size = sizeof process;
  if (config_.spansProcesses) {
    if (Code code = processSelf(&process, error); code != WL_OK) return code;
  }
  uint32_t joined = 0;
  if (!member(rank).joined.compare_exchange_strong(joined, 1))
    return fail(error, WL_INVALID_ARGUMENT, "rank %u joined already; a rank has one handle", rank);
  if (config_.spansProcesses)
    block_.stageLine(rank).probe.store(peerMemoryProbe(), std::memory_order_relaxed);
  Member& own = member(rank);
  own.pidNamespace.store(static_cast<uint32_t>(process.pid_namespace), std::memory_order_relaxed);
  own.started.store(process.started, std::memory_order_relaxed);
  own.pid.store(process.pid, std::memory_order_release);
  claimed_[rank] = true;
  if (devices_ != nullptr) devices_->join(rank);
  return WL_OK;
}

void Group::unclaim(uint32_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  claimed_[rank] = false;
  member(rank).joined.store(0);
}

void Group::beat() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    if (claimed_[rank]) member(rank).beats.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Group::leave(uint32_t rank) {
  if (lines(rank).state.left.exchange(1, std::memory_order_seq_cst) != 0) return false;
  shared().leavers.fetch_add(1, std::memory_order_seq_cst);
  if (hosts_ != nullptr) hosts_->tellLeft(rank);
  wakeSleepers();
  return true;
}

void Group::publishFailure(const wl_error_t& error) {
  if (publishHere(error) && hosts_ != nullptr) hosts_->tellFailure(error);
}

bool Group::publishHere(const wl_error_t& error) {
  bool stands = false;
  if (failure() == nullptr) {
    constexpr uint32_t kLast = kFailureRecords - 1;
    const uint32_t own = std::min(shared().failing.fetch_add(1, std::memory_order_seq_cst), kLast);
    if (own < kLast) shared().records[own] = error;
    // Other threads are copying their records, of 2 KiB each, unless all of them died while they
    // copied.
    for (const int64_t start = clockNs(); own == kLast && failure() == nullptr; sched_yield()) {
      if (clockNs() - start > kRecordLimitNs) break;
    }
    uint32_t none = 0;
    stands = shared().failed.compare_exchange_strong(none, own + 1, std::memory_order_seq_cst);
  }
  wakeSleepers();
  return stands;
}

bool Group::quiescent() const {
  if (failure() == nullptr) return true;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    // Ranks of other hosts access only the control block.
    if (!isBeside(rank)) continue;
    const State& state = lines(rank).state;
    if ((state.busy.load(std::memory_order_seq_cst) != 0 ||
         state.drivers.load(std::memory_order_seq_cst) != 0) &&
        member(rank).lost.load(std::memory_order_seq_cst) == 0) {
      return false;
    }
    if (devices_ != nullptr && devices_->mayAccess(rank)) return false;
  }
  return true;
}

Agreement Group::agreement() const {
  uint64_t word = shared().shrink.load(std::memory_order_seq_cst);
  for (uint32_t rank = 0; hosts_ != nullptr && rank < config_.ranks; ++rank) {
    const Agreement own = Agreement::of(word);
    if (own.step == Agreement::kAgreed) break;
    if (hosts_->isBeside(rank)) continue;
    const Agreement theirs =
        Agreement::of(member(rank).agreement.load(std::memory_order_acquire));
    const bool isNews =
        own.step == Agreement::kOpen || theirs.isOf(own) || theirs.round > own.round;
    if (theirs.step != Agreement::kAgreed || !isNews) continue;
    const Agreement agreed = {Agreement::kAgreed, theirs.round, theirs.maker,
                              theirs.isOf(own) ? own.file : -1};
    if (shared().shrink.compare_exchange_strong(word, agreed.word(), std::memory_order_seq_cst))
      word = agreed.word();
    else
      rank = 0;
  }
  return Agreement::of(word);
}

Code Group::watch(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
                  wl_error_t* error) {
  bool isGone = false;
  {
    std::lock_guard<std::mutex> lock(watchMutex_);
    if (watch_ == nullptr) {
      if (Code code = Watch::start(*this, &watch_, error); code != WL_OK) return code;
    }
    if (Code code = watch_->add(process, std::move(ranks), silenceNs, &isGone, error);
        code != WL_OK) {
      return code;
    }
  }
  if (isGone) dropRetired();
  return WL_OK;
}

int32_t Group::lastToEnter(uint32_t sequence) const {
  const TickScale scale = tickScale();
  int32_t last = -1;
  int64_t latest = 0;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    Recorded recorded;
    if (!recorder(rank).find(sequence, scale, &recorded)) continue;
    if (recorded.enteredNs <= latest) continue;
    latest = recorded.enteredNs;
    last = static_cast<int32_t>(rank);
  }
  return last;
}

void Group::wakeSleepers() {
  orderLooks();
  if (shared().sleepers.load(std::memory_order_seq_cst) == 0) return;
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    Doorbell& bell = lines(rank).bell;
    if (bell.sleeping.load(std::memory_order_seq_cst) == 0) continue;
    bell.ring.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell.ring), futex(FUTEX_WAKE), INT_MAX,
            nullptr, nullptr, 0);
  }
}

void Group::sleepOn(Doorbell& bell, uint32_t seen, int64_t limitNs) {
  timespec limit;
  limit.tv_sec = limitNs / 1'000'000'000;
  limit.tv_nsec = limitNs % 1'000'000'000;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell.ring), futex(FUTEX_WAIT), seen, &limit,
          nullptr, 0);
}

void Group::retire(std::shared_ptr<const void> memory) noexcept {
  if (quiescent()) return;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    retired_.push_back(std::move(memory));
  } catch (const std::bad_alloc&) {
    // Leaks the memory, which is safer than a peer's store into freed memory.
    alignas(std::shared_ptr<const void>) unsigned char kept[sizeof memory];
    new (kept) std::shared_ptr<const void>(std::move(memory));
    return;
  }
  // A rank that has left since the check above found nothing to drop.
  dropRetired();
}

void Group::dropRetired() {
  std::vector<std::shared_ptr<const void>> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  if (quiescent()) dropped.swap(retired_);
}

}  // namespace windlass
