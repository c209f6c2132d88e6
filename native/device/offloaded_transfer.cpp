// SPDX-License-Identifier: Apache-2.0
#include "native/device/offloaded_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "native/base/target.h"
#include "native/device/device_moves.h"

namespace windlass {
namespace {

using Copied = ImageLayout::Copied;

std::atomic<uint64_t> ids{0};

template <class Visit>
void forEachItem(const ChunkTable& table, Visit&& visit) {
  const uint64_t* end = table.start(uint64_t{table.phases()} * table.blocks());
  for (ChunkItem item = {table.start(0)}; item.words != end; item.words += item.size()) visit(item);
}

// Copies the rank's own items from the words of the plan.
std::vector<uint64_t> ownWords(const ChunkTable& own) {
  const uint64_t blocks = uint64_t{own.phases()} * own.blocks();
  const uint64_t first = own.words[ChunkTable::kHeadWords];
  std::vector<uint64_t> words = {own.words[0], ChunkTable::kHeadWords + blocks + 1};
  for (uint64_t n = 0; n <= blocks; ++n)
    words.push_back(own.words[ChunkTable::kHeadWords + n] - first);
  words.insert(words.end(), own.start(0), own.start(blocks));
  return words;
}

size_t hostsOf(const std::vector<Copied>& boxes) {
  size_t count = 0;
  while (count < boxes.size() && !boxes[count].isOnDevice) ++count;
  return count;
}

// A view of bytes packed at `data`.
struct Dense {
  int64_t strides[kMaxDims];
  int64_t bytes = 1;
  StridedView view;

  Dense(unsigned char* data, const StridedView& like)
      : view{data, DType::kU8, like.ndim, like.shape, strides} {
    for (uint32_t d = like.ndim; d-- > 0; bytes *= like.shape[d]) strides[d] = bytes;
  }
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
};

// Part of an image that boxes on the host take. It is visited in consecutive pieces.
class HostBoxes {
 public:
  explicit HostBoxes(const std::vector<Copied>& boxes)
      : next_(boxes.data()), end_(next_ + hostsOf(boxes)) {}
  uint64_t begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }

  // Copies the data of boxes in bytes [at, at + bytes) of that part to `buffer`, which holds these
  // bytes, or back.
  void copy(unsigned char* buffer, uint64_t at, uint64_t bytes, bool isToBuffer) {
    const uint64_t start = begin_ + at;
    const uint64_t end = start + bytes;
    for (; next_ != end_ && next_->at < end; ++next_) {
      const uint64_t from = std::max(start, next_->at);
      const uint64_t to = std::min(end, endOf(*next_));
      unsigned char* data = buffer + (from - start);
      if (to > from) {
        next_->box.forEachPart(from - next_->at, to - from, [&](const StridedView& part) {
          const Dense packed(data, part);
          const StridedView& target = isToBuffer ? packed.view : part;
          kTarget.move(&target, 1, isToBuffer ? part : packed.view, DType::kU8, Stores::kCached);
          data += packed.bytes;
        });
      }
      if (endOf(*next_) > end) return;
    }
  }

 private:
  static uint64_t endOf(const Copied& copied) { return copied.at + copied.box.bytes(); }

  const Copied* next_;
  const Copied* const end_;
  const uint64_t begin_ = next_ == end_ ? 0 : next_->at;
  const uint64_t bytes_ = next_ == end_ ? 0 : endOf(end_[-1]) - begin_;
};

std::vector<RankDevice::Rows> rowsOf(const std::vector<Copied>& boxes, uint64_t image,
                                     bool isToImage) {
  std::vector<RankDevice::Rows> all;
  for (size_t i = hostsOf(boxes); i < boxes.size(); ++i)
    appendRows(boxes[i].box, image + boxes[i].at, isToImage, &all);
  return all;
}

void* pointerTo(uint64_t address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

OffloadedTransfer::OffloadedTransfer(ImageLayout layout, const uint64_t* table)
    : id_(++ids), layout_(std::move(layout)), named_(ownWords({table})), table_(named_) {}

bool OffloadedTransfer::name(const std::vector<DeviceLayout>& images) {
  const auto isSame = [](const DeviceLayout& a, const DeviceLayout& b) {
    return a.in == b.in && a.out == b.out;
  };
  if (std::equal(images.begin(), images.end(), images_.begin(), images_.end(), isSame)) return true;
  images_ = images;
  forEachItem({named_.data()}, [&](const ChunkItem& item) {
    const auto rename = [&](const uint64_t* view, size_t word) {
      const Place place = {view[word]};
      if (place.isNone() || place.window() == kAddressSpace) return;
      const DeviceLayout& owner = images[ChunkItem::rankOf(view)];
      const uint64_t image = place.window() == kRead ? owner.in : owner.out;
      table_[static_cast<size_t>(view - named_.data()) + word] =
          Place::of(kAddressSpace, image + place.offset()).word;
    };
    for (uint32_t s = 0; s < item.sources(); ++s) rename(item.source(s), 1);
    for (uint32_t t = 0; t < item.targets(); ++t) {
      rename(item.target(t), 1);
      rename(item.target(t), 2);
    }
  });
  return false;
}

Code OffloadedTransfer::send(RankDevice& device, const DeviceLayout& own, bool isHeld,
                             wl_error_t* error) {
  HostBoxes hosts(layout_.read);
  Code code = device.fillDevice(
      pointerTo(own.in + hosts.begin()), hosts.bytes(),
      [&](unsigned char* buffer, uint64_t at, uint64_t bytes) {
        hosts.copy(buffer, at, bytes, true);
      },
      error);
  if (code == WL_OK) code = device.copyRows(rowsOf(layout_.read, own.in, true), error);
  if (code == WL_OK && layout_.keepsStages)
    code = device.toDevice(pointerTo(own.out), layout_.stages, layout_.stageBytes, error);
  if (code != WL_OK || layout_.counts.empty()) return code;
  std::vector<uint32_t> values;
  for (const uint32_t* count : layout_.counts)
    values.push_back(__atomic_load_n(count, __ATOMIC_RELAXED));
  if (!isHeld) counts_ = values;
  ahead_ = values;
  for (size_t i = 0; i < values.size(); ++i) ahead_[i] -= counts_[i];
  if (isHeld) return code;
  return device.toDevice(pointerTo(own.out + layout_.countsAt), values.data(),
                         countBytes(), error);
}

Code OffloadedTransfer::fetch(RankDevice& device, const DeviceLayout& own, const void* noted,
                              wl_error_t* error) {
  HostBoxes hosts(layout_.written);
  Code code = device.takeFromDevice(
      pointerTo(own.out + hosts.begin()), hosts.bytes(),
      [&](const unsigned char* buffer, uint64_t at, uint64_t bytes) {
        hosts.copy(const_cast<unsigned char*>(buffer), at, bytes, false);
      },
      error);
  if (code == WL_OK) code = device.copyRows(rowsOf(layout_.written, own.out, false), error);
  if (code == WL_OK && layout_.keepsStages)
    code = device.fromDevice(layout_.stages, pointerTo(own.out), layout_.stageBytes, error);
  std::vector<uint32_t> values(layout_.counts.size());
  if (code != WL_OK || values.empty()) return code;
  if (noted != nullptr) {
    std::memcpy(values.data(), noted, countBytes());
  } else {
    code = device.fromDevice(values.data(), pointerTo(own.out + layout_.countsAt),
                             countBytes(), error);
  }
  for (size_t i = 0; code == WL_OK && i < values.size(); ++i)
    __atomic_store_n(layout_.counts[i], values[i] + ahead_[i], __ATOMIC_RELEASE);
  if (code == WL_OK) counts_ = std::move(values);
  return code;
}

}  // namespace windlass
