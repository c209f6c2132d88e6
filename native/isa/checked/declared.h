// SPDX-License-Identifier: Apache-2.0
// Order of items that a library's kernel declares by `needs` and `leavesAfter`. It gives the ranks
// that have entered when an item runs, and the ranks that stay until the item is over. Both
// executors follow this order. An executor that waits for more must not hide a missing declaration.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace windlass::checked {

struct Declared {
  uint32_t ranks;  // at most 64
  uint32_t phases;
  std::function<uint32_t(uint32_t rank)> blocks;
  std::function<uint32_t(uint32_t rank, uint32_t block, uint32_t phase)> needs;
  std::function<uint32_t(uint32_t rank)> leavesAfter;
};

class DeclaredOrder {
 public:
  // Calls all of the functions now. With more than kMostItems items, or too many ranks, everything
  // is allowed.
  explicit DeclaredOrder(const Declared& declared);

  // Returns true if `owner` has entered when this item of `rank` runs.
  bool hasEntered(uint32_t rank, uint32_t block, uint32_t phase, uint32_t owner) const;
  // Returns true if `owner` returns only after this phase of `rank` is over.
  bool staysFor(uint32_t owner, uint32_t rank, uint32_t phase) const;

 private:
  static constexpr uint64_t kMostItems = 4096;
  using Ranks = uint64_t;  // one bit for each rank

  Ranks setOf(uint32_t need) const;
  uint32_t need(uint32_t rank, uint32_t block, uint32_t phase) const {
    return needs_[phase * ranks_ + rank][block];
  }
  // Union of `of` over the ranks that an item needs, or after which a rank leaves.
  Ranks over(const std::vector<Ranks>& of, uint32_t need) const;

  uint32_t ranks_;
  uint32_t phases_;
  bool isKnown_ = true;
  std::vector<std::vector<uint32_t>> needs_;  // by phase and rank, then block
  std::vector<uint32_t> leavesAfter_;
  std::vector<std::vector<Ranks>> entered_;  // when a phase of a rank is over
};

}  // namespace windlass::checked
