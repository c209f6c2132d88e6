// SPDX-License-Identifier: Apache-2.0
// A plan bound to memory: made once by all ranks together, run many times.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "native/comm/comm.h"
#include "native/transfer/binding.h"
#include "native/transfer/stages.h"

namespace windlass {

// What one rank brings to a transfer, and the items that came of it. Peers read it while they
// register and, by way of ChunkBlocks, while they run.
class BoundPlan {
 public:
  // Reads and checks what needs no peer, and allocates the stages.
  Code read(const wl_transfer_config_t& config, wl_error_t* error);
  // Resolves the chunks of rank `rank`, which brought this, against the bindings and stages of all
  // ranks. `plans` holds one pointer a rank.
  Code resolve(uint32_t rank, const std::vector<const BoundPlan*>& plans, wl_error_t* error);
  // Joins the resolved boxes of all ranks that take the same from the same sources.
  static void join(const std::vector<BoundPlan*>& plans);
  // Makes the items: this rank's share of its boxes.
  Code makeItems(wl_error_t* error);
  // Once every rank has made its items.
  void dropBoxes();

  // Phases that the items of this rank need.
  uint32_t phases() const { return phases_; }
  // The items of the kMostPhases phases from w * kMostPhases on, which may be beyond this rank's.
  const ChunkBlocks& blocks(uint32_t w) const {
    return w < windows_.size() ? windows_[w] : nothing_;
  }
  // Bytes that the items of these phases write, to peers and to stages too.
  uint64_t workBytes(uint32_t w) const { return w < workBytes_.size() ? workBytes_[w] : 0; }
  // Bytes that this rank's targets get.
  uint64_t targetBytes() const { return targetBytes_; }
  uint64_t stagingBytes() const { return stages_.bytes(); }
  // Source binding `index`, or nullptr.
  const Binding* source(uint64_t index) const {
    return index < sources_.size() ? &sources_[index] : nullptr;
  }
  // Adds the bytes written to each of the first `count` target tensors in the run in progress, or
  // in the last one: of a chunk that some of its items have written, that share of its bytes. What
  // was written is visible to the caller.
  void addMoved(uint64_t* moved, uint64_t count) const;
  void resetMoved();

 private:
  // What has been written of one chunk of this rank's targets.
  struct Progress {
    uint32_t done = 0;   // of the items that write it; each adds one
    uint32_t items = 0;  // of all ranks
    uint64_t bytes = 0;
    size_t binding = 0;
  };
  // One chunk: views of whole bindings' strides with the chunk's corner as data. Where a box was
  // joined to another, that one has the targets of both.
  struct Box {
    uint32_t phase = 0;
    uint32_t ndim = 0;
    std::vector<StridedView> targets;
    std::vector<Progress*> moved;  // of each target; none for a stage
    std::vector<StridedView> sources;
    ReduceOp op = ReduceOp::kSum;
    DType wire = DType::kBool;
    const int64_t* length = nullptr;
    uint64_t bytes = 0;  // of each target
    const Box* joined = nullptr;
    size_t part = 0;  // this box's among the targets of the one that it was joined to
    size_t turn = 0;  // of the target whose rank runs the first item
  };
  struct SourcesHash;
  struct SameSources;
  // The items of a box that fall to one of its targets.
  struct Share;
  Code readChunk(Words& in, uint64_t index, uint32_t rank,
                 const std::vector<const BoundPlan*>& plans, Box* box, wl_error_t* error);
  static uint32_t cutDimension(const Box& box, const int64_t* length);
  void addItems(Share& share, const int64_t* start, const int64_t* length);
  Code makeBlocks(wl_error_t* error);
  const int64_t* keep(const int64_t* values, uint32_t count);

  std::vector<Binding> sources_;
  std::vector<Binding> targets_;
  Stages stages_;
  std::vector<int64_t> chunkWords_;
  uint64_t chunkCount_ = 0;
  std::vector<Box> boxes_;

  std::vector<ChunkItem> items_;  // by phase
  std::vector<uint64_t> first_;
  std::vector<std::unique_ptr<StridedView[]>> views_;
  std::vector<std::unique_ptr<uint32_t*[]>> movedOf_;
  std::vector<std::unique_ptr<int64_t[]>> numbers_;
  uint64_t numbersLeft_ = 0;
  int64_t* nextNumber_ = nullptr;
  uint32_t phases_ = 1;
  uint64_t targetBytes_ = 0;
  std::deque<Progress> progress_;
  std::vector<ChunkBlocks> windows_;
  std::vector<uint64_t> workBytes_;  // for each window
  ChunkBlocks nothing_ = {nullptr, nullptr, 0, 0};
};

class Transfer {
 public:
  // Empty until created.
  explicit Transfer(Comm& comm) : comm_(comm), group_(comm.groupPointer()) {}
  ~Transfer();
  // Collective. All ranks succeed, or all fail with the first failing rank's error. `out` belongs to
  // this communicator; nullptr where it found no memory, which all ranks are told.
  static Code create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                     Transfer* out, wl_error_t* error);

  // One operation for every kMostPhases phases.
  Code run(uint64_t version, int64_t deadlineNs, wl_error_t* error);
  // Of one rank, or of all with `rank` below 0; see BoundPlan::addMoved.
  void moved(int32_t rank, uint64_t* moved, uint64_t count) const;
  int32_t ranks() const { return static_cast<int32_t>(plans_.size()); }
  // A rank's source binding as it was registered, or nullptr.
  const Binding* source(int32_t rank, uint64_t index) const;
  uint64_t stagingBytes() const { return plans_[comm_.rank()]->stagingBytes(); }

 private:
  Comm& comm_;
  const std::shared_ptr<Group> group_;
  uint32_t id_ = 0;                                // sequence of the registration
  std::vector<std::shared_ptr<BoundPlan>> plans_;  // of every rank
  uint32_t phases_ = 1;                            // of the rank that needs most
};

}  // namespace windlass
