// SPDX-License-Identifier: Apache-2.0
#include "native/comm/offloaded_transfer.h"

#include <algorithm>

#include "native/base/extent.h"
#include "native/base/target.h"

namespace windlass {
namespace {

// Views keep their place in a line.
constexpr uint64_t kImageAlignment = 64;

template <class Visit>
void forEachItem(const ChunkTable& table, Visit&& visit) {
  const uint64_t* end = table.start(uint64_t{table.phases()} * table.blocks());
  for (ChunkItem item = {table.start(0)}; item.words != end; item.words += item.size()) visit(item);
}

ChunkTable tableOf(const Launch& launch, uint32_t rank) {
  return {launch.at<const uint64_t>(rank, launch.of(rank).aux)};
}

uint64_t addressOf(const Launch& launch, const uint64_t* view, Place place) {
  return reinterpret_cast<uint64_t>(launch.at<void>(ChunkItem::rankOf(view), place));
}

// Of an item without elements 0.
uint64_t spanOf(const ChunkItem& item, const uint64_t* view, const int64_t* strides) {
  int64_t bytes = 0;
  extentOf(item.ndim(), item.extents(), strides, sizeOf(ChunkItem::dtypeOf(view)), &bytes);
  return static_cast<uint64_t>(bytes);
}

}  // namespace

void OffloadedTransfer::find(const Launch& launch) {
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    forEachItem(tableOf(launch, rank), [&](const ChunkItem& item) {
      mostViews_ = std::max({mostViews_, item.targets(), item.sources()});
      for (uint32_t s = 0; s < item.sources(); ++s) {
        const uint64_t* source = item.source(s);
        findView(launch, item, source, ChunkItem::sourceStrides(source), false);
      }
      for (uint32_t t = 0; t < item.targets(); ++t) {
        const uint64_t* target = item.target(t);
        findView(launch, item, target, ChunkItem::targetStrides(target), true);
      }
    });
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t count = 0;
  for (const Range& range : ranges_) {
    if (count > 0 && range.begin < ranges_[count - 1].end) {
      Range& before = ranges_[count - 1];
      before.end = std::max(before.end, range.end);
      before.isWritten = before.isWritten || range.isWritten;
    } else {
      ranges_[count++] = range;
    }
  }
  ranges_.resize(count);
  std::sort(counts_.begin(), counts_.end());
  counts_.erase(std::unique(counts_.begin(), counts_.end()), counts_.end());
  copyTable(launch, tableOf(launch, rank_));
}

void OffloadedTransfer::findView(const Launch& launch, const ChunkItem& item, const uint64_t* view,
                                 const int64_t* strides, bool isWritten) {
  if (ChunkItem::rankOf(view) != rank_) return;
  const uint64_t address = addressOf(launch, view, ChunkItem::placeOf(view));
  if (isWritten && !ChunkItem::signalOf(view).isNone())
    counts_.push_back(addressOf(launch, view, ChunkItem::signalOf(view)));
  const uint64_t bytes = spanOf(item, view, strides);
  if (bytes == 0) return;
  ranges_.push_back({address, address + bytes, isWritten, false, 0});
  if (isWritten) targets_.push_back({item, view, address});
}

// Its items alone, of those that the words of the plan hold. They name hosts' addresses.
void OffloadedTransfer::copyTable(const Launch& launch, const ChunkTable& own) {
  const uint64_t blocks = uint64_t{own.phases()} * own.blocks();
  const uint64_t head = ChunkTable::kHeadWords + blocks + 1;
  const uint64_t first = own.words[ChunkTable::kHeadWords];
  table_.assign({own.words[0], head});
  for (uint64_t n = 0; n <= blocks; ++n)
    table_.push_back(own.words[ChunkTable::kHeadWords + n] - first);
  table_.insert(table_.end(), own.start(0), own.start(blocks));
  forEachItem({table_.data()}, [&](const ChunkItem& item) {
    const auto rename = [&](const uint64_t* view, size_t word) {
      const Place place = {view[word]};
      if (place.isNone()) return;
      table_[static_cast<size_t>(view - table_.data()) + word] =
          Place::of(kAddressSpace, addressOf(launch, view, place)).word;
    };
    for (uint32_t s = 0; s < item.sources(); ++s) rename(item.source(s), 1);
    for (uint32_t t = 0; t < item.targets(); ++t) {
      rename(item.target(t), 1);
      rename(item.target(t), 2);
    }
  });
}

const OffloadedTransfer::Range& OffloadedTransfer::rangeOf(uint64_t address) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](uint64_t at, const Range& r) { return at < r.begin; });
  return *(after - 1);
}

uint64_t OffloadedTransfer::countAt(uint64_t address) const {
  const auto found = std::lower_bound(counts_.begin(), counts_.end(), address);
  return countsAt_ + static_cast<uint64_t>(found - counts_.begin()) * sizeof(int32_t);
}

Code OffloadedTransfer::gather(RankDevice& device, wl_error_t* error) {
  using Lies = RankDevice::Lies;
  if (mostViews_ > kMostDeviceRanks) {
    return fail(error, WL_UNSUPPORTED,
                "an item of the transfer has %u targets or sources: a core of a device takes %u",
                mostViews_, kMostDeviceRanks);
  }
  for (Range& range : ranges_) {
    const auto* memory = reinterpret_cast<const void*>(range.begin);
    Lies lies = Lies::kHost;
    if (Code code = device.find(memory, &lies, error); code != WL_OK) return code;
    range.stays = lies == Lies::kHere && isOneDevice_;
    if (range.stays) continue;
    if (lies != Lies::kHost) {
      return fail(error, WL_UNSUPPORTED,
                  "a tensor of the transfer, at %p, lies on a device that not all ranks share: "
                  "redistribution takes it from the host's memory alone",
                  memory);
    }
    uint64_t& end = bytes_[range.isWritten ? 1 : 0];
    range.at = wholeLines(end) + range.begin % kImageAlignment;
    end = range.at + (range.end - range.begin);
  }
  countsAt_ = wholeLines(bytes_[1]);
  if (!counts_.empty()) bytes_[1] = countsAt_ + counts_.size() * sizeof(int32_t);
  for (int written = 0; written < 2; ++written)
    images_[written].reset(new unsigned char[bytes_[written]]);
  for (const Range& range : ranges_) {
    if (range.stays) continue;
    kTarget.copy(images_[range.isWritten ? 1 : 0].get() + range.at,
                 reinterpret_cast<const void*>(range.begin), range.end - range.begin);
  }
  for (const uint64_t address : counts_) {
    const auto* count = reinterpret_cast<const int32_t*>(address);
    const int32_t value = __atomic_load_n(count, __ATOMIC_RELAXED);
    kTarget.copy(images_[1].get() + countAt(address), &value, sizeof value);
  }
  return WL_OK;
}

void OffloadedTransfer::name(const std::vector<Images>& images) {
  forEachItem({table_.data()}, [&](const ChunkItem& item) {
    const auto rename = [&](const uint64_t* view, const int64_t* strides) {
      if (spanOf(item, view, strides) == 0) return;
      const Images& owner = images[ChunkItem::rankOf(view)];
      const uint64_t address = ChunkItem::placeOf(view).offset();
      const Range& range = owner.of->rangeOf(address);
      table_[static_cast<size_t>(view - table_.data()) + 1] =
          Place::of(kAddressSpace, range.image(owner) + (address - range.begin)).word;
    };
    for (uint32_t s = 0; s < item.sources(); ++s)
      rename(item.source(s), ChunkItem::sourceStrides(item.source(s)));
    for (uint32_t t = 0; t < item.targets(); ++t) {
      const uint64_t* target = item.target(t);
      rename(target, ChunkItem::targetStrides(target));
      const Place count = ChunkItem::signalOf(target);
      if (count.isNone()) continue;
      const Images& owner = images[ChunkItem::rankOf(target)];
      table_[static_cast<size_t>(target - table_.data()) + 2] =
          Place::of(kAddressSpace, owner.out + owner.of->countAt(count.offset())).word;
    }
  });
}

void OffloadedTransfer::scatter() {
  const Images images = {this, reinterpret_cast<uint64_t>(in()), reinterpret_cast<uint64_t>(out())};
  for (const Target& target : targets_) {
    const Range& range = rangeOf(target.address);
    if (range.stays) continue;
    const DType dtype = ChunkItem::dtypeOf(target.words);
    const auto viewAt = [&](uint64_t address) -> StridedView {
      return {reinterpret_cast<void*>(address), dtype, target.item.ndim(), target.item.extents(),
              ChunkItem::targetStrides(target.words)};
    };
    const StridedView to = viewAt(target.address);
    kTarget.move(&to, 1, viewAt(range.image(images) + (target.address - range.begin)), dtype,
                 Stores::kCached);
  }
  for (const uint64_t address : counts_) {
    int32_t value = 0;
    kTarget.copy(&value, images_[1].get() + countAt(address), sizeof value);
    __atomic_store_n(reinterpret_cast<int32_t*>(address), value, __ATOMIC_RELEASE);
  }
  for (auto& image : images_) image.reset();
  targets_ = {};
  table_ = {};
}

}  // namespace windlass
