// SPDX-License-Identifier: Apache-2.0
#include "native/memory/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "native/base/text.h"
#include "native/memory/memory.h"
#include "native/memory/shared_memory.h"

namespace windlass {
namespace {

// Makes a node for a container of that type. Inserting the node allocates no memory.
template <class Container, class... Args>
typename Container::node_type nodeOf(Args&&... args) {
  Container one;
  one.emplace(std::forward<Args>(args)...);
  return one.extract(one.begin());
}

}  // namespace

MemoryPool::MemoryPool(uint64_t bytes) : bytes_(bytes) {
  extents_.emplace(0, Extent{bytes, {}});
  bySize_.emplace(bytes, 0);
}

MemoryPool::Span MemoryPool::pagesOf(Span piece, Span free) {
  const uint64_t start = std::max(piece.start / kPage * kPage, roundedUp(free.start, kPage));
  const uint64_t end = std::min(roundedUp(piece.end, kPage), free.end / kPage * kPage);
  return {start, std::max(start, end)};
}

// Zeroes `piece` except for the part in `fresh`, which is zero already.
void MemoryPool::zero(Span piece, Span fresh) {
  const uint64_t head = std::clamp(fresh.start, piece.start, piece.end);
  const uint64_t tail = std::clamp(fresh.end, head, piece.end);
  std::memset(base_ + piece.start, 0, head - piece.start);
  std::memset(base_ + tail, 0, piece.end - tail);
}

Code MemoryPool::full(uint64_t bytes, wl_error_t* error) const {
  const uint64_t largest = bySize_.empty() ? 0 : bySize_.rbegin()->first;
  return fail(error, WL_RESOURCE,
              "cannot take %llu bytes of a memory pool: of its %llu on this rank %llu are free, "
              "%llu of them side by side; close tensors, or make a larger pool",
              text(bytes), text(bytes_), text(bytes_ - used_), text(largest));
}

Code MemoryPool::take(uint64_t bytes, void** memory, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > bytes_) return full(bytes, error);
  const uint64_t size = std::max(kAlignment, roundedUp(bytes, kAlignment));
  const auto best = bySize_.lower_bound({size, 0});
  if (best == bySize_.end()) return full(bytes, error);
  const auto [whole, offset] = *best;
  BySize::node_type restEntry;
  Extents::node_type rest;
  if (whole > size) {
    try {
      restEntry = nodeOf<BySize>(whole - size, offset + size);
      rest = nodeOf<Extents>(offset + size, Extent{whole - size, {}});
    } catch (const std::bad_alloc&) {
      return fail(error, WL_RESOURCE, "cannot take %llu bytes of a memory pool: out of memory",
                  text(bytes));
    }
  }
  const Span piece = {offset, offset + size};
  const Span fresh = pagesOf(piece, {offset, offset + whole});
  if (fresh.end > fresh.start) {
    const Code code = reserveShared(base_ + fresh.start, fresh.end - fresh.start, error, &allowed_);
    if (code != WL_OK) {
      releaseShared(base_ + fresh.start, fresh.end - fresh.start);
      return code;
    }
  }
  zero(piece, fresh);
  Extent& taken = extents_.find(offset)->second;
  taken.bytes = size;
  taken.entry = bySize_.extract(best);
  if (!rest.empty()) {
    extents_.insert(std::move(rest));
    bySize_.insert(std::move(restEntry));
  }
  used_ += size;
  *memory = base_ + offset;
  return WL_OK;
}

Code MemoryPool::giveBack(void* memory, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t offset = reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(base_);
  auto extent = extents_.find(offset);
  if (extent == extents_.end() || extent->second.isFree()) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%p is not what this memory pool has given, or was given back before", memory);
  }
  const Span piece = {offset, offset + extent->second.bytes};
  BySize::node_type entry = std::move(extent->second.entry);
  used_ -= extent->second.bytes;
  // Joins `first` with the extent after it. `free`: the one of these that was free before.
  const auto join = [this](Extents::iterator first, Extents::iterator free) {
    bySize_.erase({free->second.bytes, free->first});
    const auto second = std::next(first);
    first->second.bytes += second->second.bytes;
    extents_.erase(second);
  };
  if (const auto next = std::next(extent); next != extents_.end() && next->second.isFree())
    join(extent, next);
  if (extent != extents_.begin() && std::prev(extent)->second.isFree()) {
    --extent;
    join(extent, extent);
  }
  const Span free = {extent->first, extent->first + extent->second.bytes};
  const Span stale = pagesOf(piece, free);
  if (stale.end > stale.start) releaseShared(base_ + stale.start, stale.end - stale.start);
  entry.value() = {extent->second.bytes, extent->first};
  bySize_.insert(std::move(entry));
  return WL_OK;
}

uint64_t MemoryPool::used() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace windlass
