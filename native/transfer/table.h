// SPDX-License-Identifier: Apache-2.0
// A bound plan: the items that one rank runs, as one table of words that name all memory by its
// place, wherever the table lies itself.
#pragma once

#include "native/base/error.h"
#include "native/transfer/words.h"
#include "windlass/chunk.h"

namespace windlass {

// The words of a ChunkTable for each operation of a run, which takes kMostPhases phases of it, and
// the items of all of them.
class PlanTable {
 public:
  // Phases that the items need, one at least.
  uint32_t phases() const { return phases_; }
  // The table of operation n of a run, of the kMostPhases phases from n * kMostPhases on, which may
  // be beyond this rank's.
  const uint64_t* ofOperation(uint32_t n) const {
    return words_.data() + starts_[n < workBytes_.size() ? n : workBytes_.size()];
  }
  // Bytes that the items of these phases write, to peers and to stages too.
  uint64_t workBytes(uint32_t n) const { return n < workBytes_.size() ? workBytes_[n] : 0; }
  const WordList& words() const { return words_; }
  // visit(item, phase) for each item, in the order in which one thread runs them.
  template <class Visit>
  void forEachItem(Visit&& visit) const {
    for (uint32_t n = 0; n < workBytes_.size(); ++n) {
      const ChunkTable table = {ofOperation(n)};
      for (uint32_t k = 0; k < table.phases(); ++k) {
        const uint64_t first = uint64_t{k} * table.blocks();
        const uint64_t* end = table.start(first + table.blocks());
        for (ChunkItem item = {table.start(first)}; item.words != end; item.words += item.size())
          visit(static_cast<const ChunkItem&>(item), n * kMostPhases + k);
      }
    }
  }

 private:
  friend class ItemMaker;

  WordList words_;
  std::vector<uint64_t> starts_;     // of the operations' in words_; the last one has no items
  std::vector<uint64_t> workBytes_;  // for each operation
  uint32_t phases_ = 1;
};

// Cuts boxes into items, of a size that threads share.
class ItemMaker {
 public:
  // Adds those items of the box that fall to target number `part` of it: items fall to its targets
  // in turn, to number `turn` first. Returns how many there are for all of them.
  uint32_t add(const ChunkItem& box, uint32_t part, uint64_t turn);
  // The table of all items, by phase. Once.
  Code finish(PlanTable* table, wl_error_t* error);

 private:
  struct Item {
    uint64_t at;  // in items_
    uint64_t bytes;
    uint32_t phase;
  };
  struct Share {
    const ChunkItem& box;
    uint32_t part;
    uint64_t turn;
  };

  void cut(Share& share, const int64_t* start, const int64_t* length);
  void emit(const ChunkItem& box, const int64_t* start, const int64_t* length, uint64_t bytes);

  WordList items_;
  std::vector<Item> order_;
};

}  // namespace windlass
