// SPDX-License-Identifier: Apache-2.0
// A bound plan: one flat table of words with the items that one rank runs. The table names memory
// by Place, so it may lie anywhere.
#pragma once

#include "native/base/error.h"
#include "native/transfer/words.h"
#include "windlass/chunk.h"

namespace windlass {

// Holds one ChunkTable per operation, followed by the items of all operations. Each operation runs
// up to kMostPhases phases.
class PlanTable {
 public:
  // Number of phases of the items, at least one.
  uint32_t phases() const { return phases_; }
  // Table of operation `n`, with phases from n * kMostPhases on. Empty if this rank has no such
  // phases.
  const uint64_t* ofOperation(uint32_t n) const {
    return words_.data() + starts_[n < workBytes_.size() ? n : workBytes_.size()];
  }
  // Bytes by which operation n's items count towards the size from which an operation exceeds the
  // caches.
  uint64_t workBytes(uint32_t n) const { return n < workBytes_.size() ? workBytes_[n] : 0; }
  const WordList& words() const { return words_; }
  // Calls visit(item, phase) for each item, in the order in which one thread runs them.
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
  std::vector<uint64_t> starts_;     // start of each operation in words_, then of an empty one
  std::vector<uint64_t> workBytes_;  // per operation
  uint32_t phases_ = 1;
};

// Cuts boxes into items of a size that threads can share.
class ItemMaker {
 public:
  // Adds the items of the box that fall to target number `part`. Items go to the targets in turn,
  // first to number turn % targets. Returns the number of items over all targets.
  uint32_t add(const ChunkItem& box, uint32_t part, uint64_t turn);
  // Builds the table of all items, sorted by phase. Call once.
  Code finish(PlanTable* table, wl_error_t* error);

 private:
  struct Item {
    uint64_t at;  // index in items_
    uint64_t bytes;  // written
    uint64_t work;
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
