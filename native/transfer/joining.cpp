// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/joining.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace windlass {
namespace {

uint32_t ownerOf(const ChunkItem& box) {
  return ChunkItem::rankOf(box.source(0));
}

// A box that a rank asks about.
struct Asked {
  ChunkItem box;
  uint32_t rank;
  uint32_t part = 0;
  Asked* first = nullptr;  // first joined box, by rank and then by order of boxes
  Asked* next = nullptr;
  // Set only in the first box.
  Asked* last = nullptr;
  uint32_t targets = 0;
  uint64_t turn = 0;
};

struct SourcesHash {
  size_t operator()(const Asked* asked) const {
    const ChunkItem& box = asked->box;
    uint64_t hash = box.words[0];
    const auto mix = [&](const uint64_t* from, const uint64_t* to) {
      for (; from != to; ++from) hash = ((hash ^ *from) * 0x9e3779b97f4a7c15u) ^ hash >> 29;
    };
    mix(box.words + ChunkItem::kHeadWords, box.target(0));
    mix(box.source(0), box.words + box.size());
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

// True for boxes of one shape, phase and reduction with the same sources and dtypes, whose ranks
// reach each other's memory.
struct SameSources {
  const Group* group;

  bool operator()(const Asked* a, const Asked* b) const {
    const ChunkItem& one = a->box;
    const ChunkItem& other = b->box;
    const uint64_t* sources = one.source(0);
    return one.words[0] == other.words[0] && one.words[1] == other.words[1] &&
           ChunkItem::dtypeOf(one.target(0)) == ChunkItem::dtypeOf(other.target(0)) &&
           std::equal(one.extents(), one.extents() + one.ndim(), other.extents()) &&
           std::equal(sources, static_cast<const uint64_t*>(one.words + one.size()),
                      other.source(0)) &&
           group->shareProcess(a->rank, b->rank);
  }
};

}  // namespace

void askOwners(const WordList& boxes, std::vector<WordList>* questions) {
  forEachIn<ChunkItem>(boxes, 0, [&](const ChunkItem& box) {
    if (isStaged(box)) return;
    WordList& question = (*questions)[ownerOf(box)];
    question.insert(question.end(), box.words, box.words + box.size());
  });
}

void answer(uint32_t rank, const Group& group, uint32_t most, uint64_t at,
            std::vector<WordList>* questions) {
  std::vector<Asked> asked;
  for (uint32_t from = 0; from < questions->size(); ++from) {
    forEachIn<ChunkItem>((*questions)[from], at,
                     [&](const ChunkItem& box) { asked.push_back({box, from}); });
  }
  std::unordered_set<Asked*, SourcesHash, SameSources> boxes(asked.size(), {}, {&group});
  uint64_t turn = rank;
  for (Asked& one : asked) {
    auto [place, isNew] = boxes.insert(&one);
    if ((*place)->targets == most) {
      boxes.erase(place);
      std::tie(place, isNew) = boxes.insert(&one);
    }
    Asked& first = **place;
    if (isNew) {
      // Different owners start with different ranks.
      first.turn = ++turn;
    } else {
      first.last->next = &one;
    }
    one.first = &first;
    one.part = first.targets++;
    first.last = &one;
  }
  std::vector<WordList> answers(questions->size());
  for (const Asked& one : asked) {
    WordList& words = answers[one.rank];
    const Asked& first = *one.first;
    words.push_back(first.targets | uint64_t{one.part} << 32);
    if (first.targets == 1) continue;
    words.push_back(first.turn);
    for (const Asked* each = &first; each != nullptr; each = each->next)
      words.insert(words.end(), each->box.target(0), each->box.target(1));
  }
  questions->swap(answers);
}

Answers::Joined Answers::next(const ChunkItem& box) {
  const uint32_t owner = ownerOf(box);
  const uint64_t* answer = answers_[owner].data() + at_[owner];
  const auto targets = static_cast<uint32_t>(answer[0]);
  const auto part = static_cast<uint32_t>(answer[0] >> 32);
  if (targets == 1) {
    ++at_[owner];
    return {box, part, 0};
  }
  const uint64_t turn = answer[1];
  const uint64_t* first = answer + 2;
  const uint64_t* last = first + uint64_t{targets} * (ChunkItem::kTargetWords + box.ndim());
  at_[owner] += static_cast<size_t>(last - answer);
  joined_.assign(box.words, box.target(0));
  joined_[1] = targets | uint64_t{box.sources()} << 32;
  joined_.insert(joined_.end(), first, last);
  joined_.insert(joined_.end(), box.source(0), box.words + box.size());
  return {{joined_.data()}, part, turn};
}

}  // namespace windlass
