// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/table.h"

#include <algorithm>
#include <tuple>

#include "native/core/control_block.h"

namespace windlass {
namespace {

// Limit of an item's bytes over all its targets. An item may exceed it up to kLeastBytes per
// target. Blocks combine smaller items up to about kBlockBytes.
constexpr uint64_t kItemBytes = uint64_t{256} << 10;
constexpr uint64_t kLeastBytes = uint64_t{16} << 10;
constexpr uint64_t kBlockBytes = uint64_t{128} << 10;
// Cuts of a target's row are a multiple of this, in bytes.
constexpr uint64_t kRowBytes = 256;

int64_t rowOf(const ChunkItem& box) {
  return static_cast<int64_t>(kRowBytes / sizeOf(ChunkItem::dtypeOf(box.target(0))));
}

// Returns the dimension along which to cut a box of these extents; box.ndim() if all have one
// element. Compares the smaller of the source and target stride of each dimension, and takes the
// largest. Rows then stay whole on both sides. If dimensions are equal, takes the one with the
// smaller other stride, so that neighbours stay in one item. But first cuts rows of the target that
// the source does not share, down to rowOf(box), so that the source's rows are the longer ones.
uint32_t cutDimension(const ChunkItem& box, const int64_t* length) {
  const int64_t* targetStrides = ChunkItem::targetStrides(box.target(0));
  const int64_t* sourceStrides = ChunkItem::sourceStrides(box.source(0));
  uint32_t cut = box.ndim();
  std::tuple<bool, int64_t, int64_t> best;
  for (uint32_t d = 0; d < box.ndim(); ++d) {
    if (length[d] < 2) continue;
    const auto [closer, further] = std::minmax(targetStrides[d], sourceStrides[d]);
    const bool isLongRow = targetStrides[d] == 1 && sourceStrides[d] != 1 && length[d] > rowOf(box);
    const std::tuple own(isLongRow, closer, -further);
    if (cut != box.ndim() && own <= best) continue;
    best = own;
    cut = d;
  }
  return cut;
}

// Returns the bytes by which an item counts towards the size from which an operation streams: the
// bytes that it writes, or the mean of its reads and writes if that is more. Transposed items gain
// from streaming stores at a quarter of the size, because the CPU does not foresee which lines they
// store.
uint64_t workOf(const ChunkItem& box, const int64_t* length, uint64_t bytes, uint64_t written) {
  const uint64_t elements = bytes / sizeOf(ChunkItem::dtypeOf(box.target(0)));
  const uint64_t read = elements * sizeOf(ChunkItem::dtypeOf(box.source(0))) * box.sources();
  const uint64_t work = std::max(written, (read + written) / 2);
  bool isTransposed = false;
  for (uint32_t d = 0; d < box.ndim(); ++d) {
    isTransposed = isTransposed || (length[d] > 1 &&
                                    ChunkItem::targetStrides(box.target(0))[d] == 1 &&
                                    ChunkItem::sourceStrides(box.source(0))[d] != 1);
  }
  return isTransposed ? 4 * work : work;
}

}  // namespace

uint32_t ItemMaker::add(const ChunkItem& box, uint32_t part, uint64_t turn) {
  Share share = {box, part, turn};
  const int64_t start[kMaxDims] = {};
  cut(share, start, box.extents());
  return static_cast<uint32_t>(share.turn - turn);
}

// Cuts [start, start + length) of the box into items of about kItemBytes.
void ItemMaker::cut(Share& share, const int64_t* start, const int64_t* length) {
  const ChunkItem& box = share.box;
  uint64_t bytes = sizeOf(ChunkItem::dtypeOf(box.target(0)));
  for (uint32_t d = 0; d < box.ndim(); ++d) bytes *= static_cast<uint64_t>(length[d]);
  const uint64_t most = std::max(kItemBytes / box.targets(), kLeastBytes);
  const uint32_t along = cutDimension(box, length);
  if (bytes > most && along < box.ndim()) {
    const auto parts = static_cast<int64_t>(
        std::min<uint64_t>(static_cast<uint64_t>(length[along]), (bytes + most - 1) / most));
    int64_t step = (length[along] + parts - 1) / parts;
    // Stays below length[along], so that each part is a smaller one.
    if (ChunkItem::targetStrides(box.target(0))[along] == 1 && length[along] > rowOf(box))
      step = (step + rowOf(box) - 1) / rowOf(box) * rowOf(box);
    int64_t partStart[kMaxDims];
    int64_t partLength[kMaxDims];
    std::copy(start, start + box.ndim(), partStart);
    std::copy(length, length + box.ndim(), partLength);
    for (int64_t at = 0; at < length[along]; at += step) {
      partStart[along] = start[along] + at;
      partLength[along] = std::min(step, length[along] - at);
      cut(share, partStart, partLength);
    }
    return;
  }
  if (share.turn++ % box.targets() == share.part) emit(box, start, length, bytes);
}

void ItemMaker::emit(const ChunkItem& box, const int64_t* start, const int64_t* length,
                     uint64_t bytes) {
  const uint64_t written = bytes * box.targets();
  order_.push_back({items_.size(), written, workOf(box, length, bytes, written), box.phase()});
  items_.insert(items_.end(), {box.words[0], box.words[1], bytes});
  append(&items_, length, box.ndim());
  const auto view = [&](const uint64_t* words, const uint64_t* end, const int64_t* strides) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < box.ndim(); ++d) offset += start[d] * strides[d];
    const size_t at = items_.size();
    items_.insert(items_.end(), words, end);
    items_[at + 1] += static_cast<uint64_t>(offset) * sizeOf(ChunkItem::dtypeOf(words));
  };
  for (uint32_t t = 0; t < box.targets(); ++t)
    view(box.target(t), box.target(t + 1), ChunkItem::targetStrides(box.target(t)));
  for (uint32_t s = 0; s < box.sources(); ++s)
    view(box.source(s), box.source(s + 1), ChunkItem::sourceStrides(box.source(s)));
}

// Groups the items of each phase into blocks.
Code ItemMaker::finish(PlanTable* table, wl_error_t* error) {
  uint32_t phases = 1;
  for (const Item& item : order_) phases = std::max(phases, item.phase + 1);
  if (phases > 1) {
    std::stable_sort(order_.begin(), order_.end(),
                     [](const Item& a, const Item& b) { return a.phase < b.phase; });
  }
  std::vector<std::vector<uint64_t>> ends(phases);  // ends of each phase's blocks, as item indices
  table->workBytes_.resize((phases + kMostPhases - 1) / kMostPhases);
  uint64_t gathered = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    const Item& item = order_[i];
    gathered += item.bytes;
    table->workBytes_[item.phase / kMostPhases] += item.work;
    const bool isLast = i + 1 == order_.size() || order_[i + 1].phase != item.phase;
    if (gathered < kBlockBytes && !isLast) continue;
    ends[item.phase].push_back(i + 1);
    gathered = 0;
  }
  // Word offset of each item in the table, from the first item.
  std::vector<uint64_t> starts;
  starts.reserve(order_.size() + 1);
  uint64_t end = 0;
  for (const Item& item : order_) {
    starts.push_back(end);
    end += ChunkItem{items_.data() + item.at}.size();
  }
  starts.push_back(end);

  table->phases_ = phases;
  WordList& words = table->words_;
  uint64_t before = 0;  // items of the earlier phases
  const auto addTable = [&](uint32_t first, uint32_t count, size_t blocks) {
    table->starts_.push_back(words.size());
    words.insert(words.end(), {count | uint64_t{blocks} << 32, 0, starts[before]});
    for (uint32_t phase = first; phase < first + count; ++phase) {
      for (const uint64_t last : ends[phase]) words.push_back(starts[before = last]);
      for (size_t b = ends[phase].size(); b < blocks; ++b) words.push_back(starts[before]);
    }
  };
  for (uint32_t first = 0; first < phases; first += kMostPhases) {
    const uint32_t count = std::min(phases - first, kMostPhases);
    size_t blocks = 0;
    for (uint32_t k = first; k < first + count; ++k) blocks = std::max(blocks, ends[k].size());
    if (blocks > kMostBlocks) {
      return fail(error, WL_UNSUPPORTED,
                  "a transfer of %zu blocks on one rank; split the transfer (limit %u)", blocks,
                  kMostBlocks);
    }
    addTable(first, count, blocks);
  }
  addTable(0, 0, 0);
  for (const uint64_t start : table->starts_) words[start + 1] = words.size() - start;
  words.reserve(words.size() + end);
  for (const Item& item : order_) {
    const uint64_t* from = items_.data() + item.at;
    words.insert(words.end(), from, from + ChunkItem{from}.size());
  }
  return WL_OK;
}

}  // namespace windlass
