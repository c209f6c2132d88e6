// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/global_memory.h"

#include <algorithm>

#include "native/isa/signals.h"

namespace windlass::checked {
namespace {

constexpr uint64_t kSignalLine = 64;

bool conflicts(Touching a, Touching b) {
  return a != b || a == Touching::kWrite;
}

// Names of the kinds of Touching.
constexpr const char* kPast[] = {"read", "added to", "written"};
constexpr const char* kVerb[] = {"read", "add to", "write"};

}  // namespace

void GlobalMemory::add(const Region& region) {
  const auto isIt = [&](const Region& each) {
    return each.isWindow && each.rank == region.rank && each.data == region.data &&
           each.bytes == region.bytes && each.unwritten == region.unwritten;
  };
  const std::lock_guard<std::mutex> lock(regionsMutex_);
  if (region.isWindow && std::any_of(regions_.begin(), regions_.end(), isIt)) return;
  regions_.push_back(region);
  if (region.unwritten != nullptr) hasUnwritten_ = true;
}

void GlobalMemory::drop(const Region& region) {
  {
    const std::lock_guard<std::mutex> lock(regionsMutex_);
    const auto isIt = [&](const Region& each) {
      return each.rank == region.rank && each.data == region.data && !each.isWindow;
    };
    const auto found = std::find_if(regions_.begin(), regions_.end(), isIt);
    if (found != regions_.end()) regions_.erase(found);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto begin = reinterpret_cast<uint64_t>(region.data);
  splitAt(begin);
  splitAt(begin + region.bytes);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(begin + region.bytes));
}

template <typename Takes>
const Region* GlobalMemory::find(uint32_t rank, uint64_t address, uint64_t bytes,
                                 const Takes& takes) const {
  const std::lock_guard<std::mutex> lock(regionsMutex_);
  for (const Region& region : regions_) {
    const auto begin = reinterpret_cast<uint64_t>(region.data);
    const bool mayTouch = (region.isWindow || region.rank == rank) && takes(region);
    if (mayTouch && address >= begin && bytes <= region.bytes &&
        address - begin <= region.bytes - bytes) {
      return &region;
    }
  }
  return nullptr;
}

const Region* GlobalMemory::reach(uint32_t rank, uint64_t address, uint64_t bytes) const {
  return find(rank, address, bytes, [](const Region&) { return true; });
}

const char* GlobalMemory::unwritten(uint32_t rank, uint64_t address, uint64_t bytes) const {
  const auto mayWrite = [](const Region& region) { return region.unwritten == nullptr; };
  if (find(rank, address, bytes, mayWrite) != nullptr) return nullptr;
  const Region* region = reach(rank, address, bytes);
  return region == nullptr ? nullptr : region->unwritten;
}

const char* GlobalMemory::unwritten(uint32_t rank, const GlobalRef& tensor) const {
  if (!hasUnwritten_) return nullptr;
  const char* first = nullptr;
  forEachRun(tensor, [&](uint64_t address, uint64_t bytes) {
    if (first == nullptr) first = unwritten(rank, address, bytes);
  });
  return first;
}

bool GlobalMemory::reaches(uint32_t rank, const GlobalRef& tensor) const {
  bool all = true;
  forEachRun(tensor, [&](uint64_t address, uint64_t bytes) {
    all = all && reach(rank, address, bytes) != nullptr;
  });
  return all;
}

void GlobalMemory::splitAt(uint64_t address) {
  auto next = segments_.upper_bound(address);
  if (next == segments_.begin()) return;
  auto& [begin, segment] = *std::prev(next);
  if (begin == address || segment.end <= address) return;
  Segment right = segment;
  segment.end = address;
  segments_.emplace_hint(next, address, std::move(right));
}

std::optional<Clash> GlobalMemory::touch(Segment& segment, const Touch& touch, const Clock& clock,
                                         const GlobalRef& tensor) {
  std::optional<Clash> clash;
  for (const Touch& before : segment.touches) {
    const bool ordered = before.pipe == touch.pipe || before.tick <= clock[before.pipe];
    if (ordered || !conflicts(before.touching, touch.touching)) continue;
    clash = Clash{Rule::kMemoryRace,
                  describe(tensor) + " is " + kPast[static_cast<int>(touch.touching)] + " while " +
                      placeOf(before.origin) + ", " + describe(before.origin) + ", may still " +
                      kVerb[static_cast<int>(before.touching)] + " it"};
    break;
  }
  if (touch.touching == Touching::kWrite) segment.touches.clear();
  for (Touch& before : segment.touches) {
    if (before.pipe == touch.pipe && before.touching == touch.touching) {
      before = touch;
      return clash;
    }
  }
  segment.touches.push_back(touch);
  return clash;
}

std::optional<Clash> GlobalMemory::touch(const GlobalRef& tensor, Touching touching,
                                         const Issue& issue) {
  const Touch made = {touching, issue.firstPipe + static_cast<size_t>(issue.pipe),
                      issue.tick(issue.pipe), issue.origin};
  std::optional<Clash> first;
  const std::lock_guard<std::mutex> lock(mutex_);
  forEachRun(tensor, [&](uint64_t begin, uint64_t bytes) {
    const uint64_t end = begin + bytes;
    splitAt(begin);
    splitAt(end);
    uint64_t at = begin;
    for (auto next = segments_.lower_bound(begin); at < end; at = next->second.end, ++next) {
      if (next == segments_.end() || next->first > at) {
        const uint64_t gap = next == segments_.end() || next->first > end ? end : next->first;
        next = segments_.emplace_hint(next, at, Segment{gap, {}});
      }
      std::optional<Clash> clash = touch(next->second, made, issue.clock, tensor);
      if (clash && !first) first = std::move(clash);
    }
  });
  return first;
}

std::optional<Clash> GlobalMemory::notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op,
                                          const Clock& released, size_t writer,
                                          const Origin& origin) {
  const auto address = reinterpret_cast<uint64_t>(signal);
  const bool sets = op == pto::comm::NotifyOp::Set;
  std::optional<Clash> clash;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [line, isNew] =
      lines_.try_emplace(address / kSignalLine, Writer{writer, origin, sets});
  Writer& before = line->second;
  if (before.firstPipe != writer && (sets || before.sets)) {
    clash = Clash{Rule::kSignalWriters, ": its line was written by " + placeOf(before.origin) +
                                            ", " + describe(before.origin)};
  }
  before.sets = before.sets || sets;
  const auto [release, isFirst] = released_.try_emplace(address, released);
  if (!isFirst) release->second.join(released);
  pto::comm::notify(signal, value, op);
  return clash;
}

bool GlobalMemory::look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp,
                        Clock* clock) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!pto::comm::satisfies(signal, value, cmp)) return false;
  const auto release = released_.find(reinterpret_cast<uint64_t>(signal));
  if (release != released_.end()) clock->join(release->second);
  return true;
}

}  // namespace windlass::checked
