// SPDX-License-Identifier: Apache-2.0
// Layout of a rank's words: the number of sources, the number of staging boxes, then each view as
// dtype | ndim << 8 | phase << 32, its Place, the number of readers (0 for a source), shape[ndim],
// strides[ndim], and the readers.
#include "native/transfer/peers.h"

#include <algorithm>

namespace windlass {
namespace {

constexpr uint64_t kHeadWords = 2;
constexpr uint64_t kViewWords = 3;

void addView(const Group& group, uint32_t rank, const Binding& view, uint32_t phase,
             uint64_t readers, WordList* words) {
  words->push_back(static_cast<uint64_t>(view.dtype) | uint64_t{view.ndim} << 8 |
                   uint64_t{phase} << 32);
  words->push_back(group.placeOf(rank, view.data, view.bytes()).word);
  words->push_back(readers);
  append(words, view.shape, view.ndim);
  append(words, view.strides, view.ndim);
}

PeerView viewAt(const uint64_t* words) {
  PeerView view = {};
  view.dtype = static_cast<DType>(words[0] & 0xff);
  view.ndim = static_cast<uint32_t>(words[0] >> 8 & 0xff);
  view.phase = static_cast<uint32_t>(words[0] >> 32);
  view.place = {words[1]};
  view.shape = reinterpret_cast<const int64_t*>(words + kViewWords);
  view.strides = view.shape + view.ndim;
  return view;
}

}  // namespace

WordList Peers::wordsOf(const Group& group, uint32_t rank, const std::vector<Binding>& sources,
                        const Stages& stages) {
  WordList words = {sources.size(), stages.boxes().size()};
  for (const Binding& source : sources) addView(group, rank, source, 0, 0, &words);
  for (const Stages::Box& staged : stages.boxes()) {
    addView(group, rank, staged.view, staged.phase, staged.readers, &words);
    const uint32_t* readers = stages.readersOf(staged);
    words.insert(words.end(), readers, readers + staged.readers);
  }
  return words;
}

void Peers::take(const Exchange::Round& round) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (round.at < taken_) return;
  ranks_.resize(ranks());
  bool isLast = true;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    WordList& words = ranks_[rank].words;
    words.reserve(round.totals[rank]);
    words.resize(std::min(round.at, round.totals[rank]));
    words.insert(words.end(), round.words(rank), round.words(rank) + round.count(rank));
    isLast = isLast && words.size() == round.totals[rank];
  }
  if (isLast) index();
  taken_ = round.end;
}

// Builds the index of sources and staging boxes in the words of all ranks.
void Peers::index() {
  for (Brought& brought : ranks_) {
    brought.sources.clear();
    brought.stagedFor.clear();
    const uint64_t* first = brought.words.data();
    const uint64_t* at = first + kHeadWords;
    brought.sources.reserve(first[0]);
    for (uint64_t i = 0; i < first[0]; ++i) {
      brought.sources.push_back(static_cast<uint64_t>(at - first));
      at += kViewWords + 2 * viewAt(at).ndim;
    }
    brought.stagesAt = static_cast<uint64_t>(at - first);
    for (uint64_t i = 0; i < first[1]; ++i) {
      const auto start = static_cast<uint64_t>(at - first);
      const uint64_t readers = at[2];
      at += kViewWords + 2 * viewAt(at).ndim;
      for (const uint64_t* end = at + readers; at < end; ++at)
        brought.stagedFor.emplace_back(static_cast<uint32_t>(*at), start);
    }
    std::sort(brought.stagedFor.begin(), brought.stagedFor.end());
  }
}

void Peers::dropStages() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Brought& brought : ranks_) {
    if (brought.stagedFor.empty()) continue;
    const auto end = brought.words.begin() + static_cast<int64_t>(brought.stagesAt);
    WordList(brought.words.begin(), end).swap(brought.words);
    decltype(brought.stagedFor)().swap(brought.stagedFor);
  }
}

bool Peers::source(int64_t rank, int64_t index, PeerView* view) const {
  if (rank < 0 || rank >= static_cast<int64_t>(ranks_.size()) || index < 0) return false;
  const Brought& brought = ranks_[static_cast<size_t>(rank)];
  if (index >= static_cast<int64_t>(brought.sources.size())) return false;
  *view = viewAt(brought.words.data() + brought.sources[static_cast<size_t>(index)]);
  return true;
}

bool Peers::staged(int64_t rank, uint32_t reader, int64_t n, PeerView* view) const {
  if (rank < 0 || rank >= static_cast<int64_t>(ranks_.size()) || n < 0) return false;
  const Brought& brought = ranks_[static_cast<size_t>(rank)];
  const auto& boxes = brought.stagedFor;
  const auto first =
      std::lower_bound(boxes.begin(), boxes.end(), std::pair(reader, uint64_t{0}));
  if (boxes.end() - first <= n || first[n].first != reader) return false;
  *view = viewAt(brought.words.data() + first[n].second);
  return true;
}

}  // namespace windlass
