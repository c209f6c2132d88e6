// SPDX-License-Identifier: Apache-2.0
// What one process knows of the ranks of a transfer: the source views and stages that all of them
// brought, as words that they gathered, and how far its own ranks' targets are written. Its ranks
// share it, and it lasts as long as any of their transfers.
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

// A view of a rank's memory, named by its place.
struct PeerView {
  DType dtype;
  uint32_t ndim;
  uint32_t phase;  // in which it is written, where it is staged
  Place place;
  const int64_t* shape;
  const int64_t* strides;
};

class Peers {
 public:
  // What `rank`, of this process, brings.
  static WordList wordsOf(const Group& group, uint32_t rank, const std::vector<Binding>& sources,
                          const Stages& stages);

  explicit Peers(uint32_t ranks) : progress_(ranks) {}
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // By each rank, for itself, before it tells its peers anything.
  void setProgress(uint32_t rank, std::shared_ptr<const Progress> progress) {
    progress_[rank] = std::move(progress);
  }
  // By each rank, of all rounds of a gather, before it looks: the first to come takes a round's.
  // Throws std::bad_alloc; another rank may take them then.
  void take(const Exchange::Round& round);
  // By each rank, once no rank looks for stages any more.
  void dropStages();

  uint32_t ranks() const { return static_cast<uint32_t>(progress_.size()); }
  // Whether there is one, and which.
  bool source(int64_t rank, int64_t index, PeerView* view) const;
  // Box `n` of those that `rank` stages and `reader` reads.
  bool staged(int64_t rank, uint32_t reader, int64_t n, PeerView* view) const;
  // nullptr where the rank is another process's.
  const Progress* progress(uint32_t rank) const { return progress_[rank].get(); }

 private:
  struct Brought {
    WordList words;
    std::vector<uint64_t> sources;  // where in words they begin
    uint64_t stagesAt = 0;
    std::vector<std::pair<uint32_t, uint64_t>> stagedFor;  // (reader, where), ascending
  };

  void index();

  std::mutex mutex_;  // guards what follows while ranks take it
  uint64_t taken_ = 0;  // words of each rank
  std::vector<Brought> ranks_;
  std::vector<std::shared_ptr<const Progress>> progress_;
};

}  // namespace windlass
