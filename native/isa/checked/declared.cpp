// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/declared.h"

#include "windlass/kernel.h"

namespace windlass::checked {

DeclaredOrder::DeclaredOrder(const Declared& declared)
    : ranks_(declared.ranks), phases_(declared.phases) {
  uint64_t items = 0;
  for (uint32_t rank = 0; rank < ranks_; ++rank)
    items += uint64_t{phases_} * declared.blocks(rank);
  isKnown_ = ranks_ <= kMostDeviceRanks && items <= kMostItems;
  if (!isKnown_) return;
  for (uint32_t phase = 0; phase < phases_; ++phase) {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      std::vector<uint32_t> own;
      for (uint32_t block = 0; block < declared.blocks(rank); ++block)
        own.push_back(declared.needs(rank, block, phase));
      needs_.push_back(std::move(own));
    }
  }
  for (uint32_t rank = 0; rank < ranks_; ++rank)
    leavesAfter_.push_back(declared.leavesAfter(rank));
  for (uint32_t phase = 0; phase < phases_; ++phase) {
    std::vector<Ranks> after(ranks_);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      after[rank] = Ranks{1} << rank;
      if (phase > 0) after[rank] |= entered_[phase - 1][rank];
      for (const uint32_t need : needs_[phase * ranks_ + rank])
        after[rank] |= phase == 0 ? setOf(need) : over(entered_[phase - 1], need);
    }
    entered_.push_back(std::move(after));
  }
}

DeclaredOrder::Ranks DeclaredOrder::setOf(uint32_t need) const {
  if (need == kNobody) return 0;
  if (need != kEveryRank) return Ranks{1} << need;
  return ranks_ == 64 ? ~Ranks{0} : (Ranks{1} << ranks_) - 1;
}

DeclaredOrder::Ranks DeclaredOrder::over(const std::vector<Ranks>& of, uint32_t need) const {
  Ranks all = 0;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if ((setOf(need) >> rank & 1) != 0) all |= of[rank];
  }
  return all;
}

bool DeclaredOrder::hasEntered(uint32_t rank, uint32_t block, uint32_t phase,
                               uint32_t owner) const {
  if (!isKnown_ || owner == rank) return true;
  const uint32_t own = need(rank, block, phase);
  const Ranks known = phase == 0 ? setOf(own)
                                 : entered_[phase - 1][rank] | over(entered_[phase - 1], own);
  return (known >> owner & 1) != 0;
}

bool DeclaredOrder::staysFor(uint32_t owner, uint32_t rank, uint32_t phase) const {
  if (!isKnown_ || owner == rank) return true;
  // over[r]: the ranks whose phase `phase` is over once phase `later` of rank r is over.
  std::vector<Ranks> over(ranks_);
  for (uint32_t each = 0; each < ranks_; ++each) over[each] = Ranks{1} << each;
  for (uint32_t later = phase + 1; later < phases_; ++later) {
    const std::vector<Ranks> before = over;
    for (uint32_t each = 0; each < ranks_; ++each) {
      for (const uint32_t need : needs_[later * ranks_ + each])
        over[each] |= this->over(before, need);
    }
  }
  const Ranks known = over[owner] | this->over(over, leavesAfter_[owner]);
  return (known >> rank & 1) != 0;
}

}  // namespace windlass::checked
