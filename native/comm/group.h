// SPDX-License-Identifier: Apache-2.0
// What the ranks of one in-process communicator share: control block, failure record, and memory
// whose release waits until nobody can touch it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "native/base/error.h"
#include "native/comm/control_block.h"
#include "native/comm/flight_recorder.h"
#include "native/comm/signal.h"
#include "native/window/memory.h"

namespace windlass {

struct GroupConfig {
  uint32_t ranks = 1;
  uint64_t firstSequence = 1;  // at least 1
  uint32_t cores = 1;
  // Threads that a rank's long operations run on, its own included; 0: as many as cores allow.
  uint32_t blocks = 0;
  // Cores of a rank that the device executor runs operations on; 0: the cpu executor runs them.
  uint32_t deviceCores = 0;
  int64_t deadlineNs = 60'000'000'000;
  // Waits may adjust threads that were not adopted, too.
  bool adjustsThreads = false;
};

class Group {
 public:
  // nullptr when memory is short.
  static std::shared_ptr<Group> create(const GroupConfig& config);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const GroupConfig& config() const { return config_; }
  uint32_t ranks() const { return config_.ranks; }
  // More ranks than cores: waits give up the core at once, and whoever arrives last opens an
  // operation whose inputs are not staged.
  bool oversubscribed() const { return config_.ranks > config_.cores; }

  // Ranks that share a core when all cores have about as many.
  uint32_t ranksPerCore() const { return (config_.ranks + config_.cores - 1) / config_.cores; }

  // Room for an input that a rank stages. Where ranks exceed cores a copy costs less than the
  // acknowledgements, which take another turn of all threads.
  uint64_t stageBytes() const { return oversubscribed() ? kLongStage : kShortStage; }
  // By parity of the operation, like the entries.
  unsigned char* stage(uint32_t rank, uint64_t sequence) {
    return stages_ + (2 * rank + (sequence & 1)) * stageBytes();
  }

  // Where `rank` states its parts, by parity like its entries: made by its first operation that has
  // them, and kept as long as the group. nullptr when memory is short.
  PartTable* makeParts(uint32_t rank, uint64_t sequence);
  // What `rank` stated in an operation that has parts; nullptr where it found no memory for it.
  const PartTable* parts(uint32_t rank, uint64_t sequence) const {
    return static_cast<const PartTable*>(lines_[rank].entry[sequence & 1].args.aux);
  }

  // Signals of the device executor: a line for each core of each rank in every rank's part.
  unsigned char* deviceLines() const { return deviceLines_; }
  size_t deviceLineStride() const {
    return size_t{config_.ranks} * config_.deviceCores * kDeviceLineBytes;
  }

  RankLines& lines(uint32_t rank) { return lines_[rank]; }
  const RankLines& lines(uint32_t rank) const { return lines_[rank]; }
  SharedLines& shared() { return *shared_; }
  FlightRecorder& recorder(uint32_t rank) { return recorders_[rank]; }
  const FlightRecorder& recorder(uint32_t rank) const { return recorders_[rank]; }
  // Converts the stamps of all ranks up to now.
  TickScale tickScale() const { return {made_, TickScale::Mark::now()}; }
  // The rank that entered the operation of these low 32 bits last, of those whose record of it is
  // there; -1 if none's.
  int32_t lastToEnter(uint32_t sequence) const;

  bool entered(uint32_t rank, uint64_t sequence) const {
    return reached(lines_[rank].entry[sequence & 1].sequence.load(std::memory_order_acquire),
                   static_cast<uint32_t>(sequence));
  }
  bool done(uint32_t rank, uint64_t sequence, uint32_t phases) const {
    return lines_[rank].done.word.load(std::memory_order_acquire) >= phaseWord(sequence, phases);
  }

  // Claims rank's one handle; false if it was claimed before.
  bool claim(uint32_t rank);
  void unclaim(uint32_t rank);

  // Marks `rank`, which enters nothing any more, as gone, and rings those that wait for it. False
  // if it was marked before.
  bool leave(uint32_t rank);

  const wl_error_t* failure() const { return shared_->failure.load(std::memory_order_seq_cst); }
  // Writes the failure record unless one stands, and wakes every rank. failure() is set on return.
  void publishFailure(const wl_error_t& error);
  // No operation failed, or no rank is inside a call: nobody can touch memory named in a failed
  // operation.
  bool quiescent() const;

  // Rings every rank that sleeps. Call after a seq_cst read-modify-write that follows the stores to
  // announce.
  void wakeSleepers();

  // Drops `memory` now or, when a rank may still touch it, once the last rank is out.
  void retire(std::shared_ptr<const void> memory) noexcept;
  // Drops what was retired unless a rank may still touch it. Call when a rank is out of a call and
  // a failure stands.
  void dropRetired();

 private:
  static constexpr uint64_t kShortStage = uint64_t{4} << 10;
  static constexpr uint64_t kLongStage = uint64_t{64} << 10;

  explicit Group(const GroupConfig& config);

  GroupConfig config_;
  TickScale::Mark made_;
  RankLines* lines_ = nullptr;
  SharedLines* shared_ = nullptr;
  FlightRecorder* recorders_ = nullptr;
  unsigned char* stages_ = nullptr;
  unsigned char* deviceLines_ = nullptr;
  void* mapping_ = nullptr;  // of the lines, the recorders and the stages
  uint64_t mapped_ = 0;
  std::vector<void*> parts_;  // each touched by its rank alone; entries name what is there
  wl_error_t record_ = {};
  std::mutex mutex_;  // guards what follows; never held in an operation
  std::vector<bool> claimed_;
  std::vector<std::shared_ptr<const void>> retired_;
};

}  // namespace windlass
