// SPDX-License-Identifier: Apache-2.0
// What a library's kernel says of the order of its items, by `needs` and `leavesAfter`: which ranks
// have entered when an item runs, and which ranks stay until it is over. Both executors keep to
// that, and one that waits for more must not hide what is missing.
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
  // Asks all of it now. Of more than kMostItems items nothing is known, and all is allowed.
  explicit DeclaredOrder(const Declared& declared);

  // Whether `owner` has entered once that item of `rank` runs.
  bool hasEntered(uint32_t rank, uint32_t block, uint32_t phase, uint32_t owner) const;
  // Whether `owner` returns only once that phase of `rank` is over.
  bool staysFor(uint32_t owner, uint32_t rank, uint32_t phase) const;

 private:
  static constexpr uint64_t kMostItems = 4096;
  using Ranks = uint64_t;  // a bit each

  Ranks setOf(uint32_t need) const;
  uint32_t need(uint32_t rank, uint32_t block, uint32_t phase) const {
    return needs_[phase * ranks_ + rank][block];
  }
  // The union of `of` over the ranks that an item, or a rank that leaves, waits for.
  Ranks over(const std::vector<Ranks>& of, uint32_t need) const;

  uint32_t ranks_;
  uint32_t phases_;
  bool isKnown_ = true;
  std::vector<std::vector<uint32_t>> needs_;  // of each phase and rank, by block
  std::vector<uint32_t> leavesAfter_;
  std::vector<std::vector<Ranks>> entered_;  // once a phase of a rank is over
};

}  // namespace windlass::checked
