// SPDX-License-Identifier: Apache-2.0
// One process's view of the ranks of a transfer: the gathered source views and staging boxes of all
// ranks, and the write progress of its own ranks. Shared by these ranks, it lives as long as any of
// their transfers.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "native/core/group.h"
#include "native/transfer/binding.h"
#include "native/transfer/exchange.h"
#include "native/transfer/progress.h"
#include "native/transfer/stages.h"
#include "native/transfer/words.h"

namespace windlass {

// A view of a rank's memory, addressed by Place.
struct PeerView {
  DType dtype;
  uint32_t ndim;
  uint32_t phase;  // phase that writes it, if it is a staging buffer
  Place place;
  const int64_t* shape;
  const int64_t* strides;
};

class Peers {
 public:
  // Encodes the views of `rank`, a rank of this process, for the gather.
  static WordList wordsOf(const Group& group, uint32_t rank, const std::vector<Binding>& sources,
                          const Stages& stages);

  explicit Peers(uint32_t ranks) : progress_(ranks) {}
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Each rank calls this for itself before it sends its peers anything.
  void setProgress(uint32_t rank, std::shared_ptr<const Progress> progress) {
    progress_[rank] = std::move(progress);
  }
  // Each rank calls this for all rounds of a gather, before any lookup. The first caller stores the
  // round. Throws std::bad_alloc; another rank may then store the round.
  void take(const Exchange::Round& round);
  // Each rank calls this after every rank has finished staged() lookups.
  void dropStages();

  uint32_t ranks() const { return static_cast<uint32_t>(progress_.size()); }
  // Returns false if there is no such source binding.
  bool source(int64_t rank, int64_t index, PeerView* view) const;
  // Finds box `n` of the staging boxes that `rank` writes and `reader` reads. Returns false if
  // there is none.
  bool staged(int64_t rank, uint32_t reader, int64_t n, PeerView* view) const;
  // nullptr if the rank lives in another process.
  const Progress* progress(uint32_t rank) const { return progress_[rank].get(); }

 private:
  struct Brought {
    WordList words;
    std::vector<uint64_t> sources;  // start index in `words`
    uint64_t stagesAt = 0;
    std::vector<std::pair<uint32_t, uint64_t>> stagedFor;  // (reader, start index), ascending
  };

  void index();

  std::mutex mutex_;  // guards taken_ and ranks_ in take() and dropStages()
  uint64_t taken_ = 0;  // words stored per rank
  std::vector<Brought> ranks_;
  std::vector<std::shared_ptr<const Progress>> progress_;
};

}  // namespace windlass
