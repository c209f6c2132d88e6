// SPDX-License-Identifier: Apache-2.0
// Operations that a rank has put on its caller's streams. Ranks enqueue each one together. A watch
// follows operations in flight and in graphs. It reports their end to the rank, and the end of the
// communicator to the devices.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "native/base/text.h"
#include "native/device/cuda/streams.h"
#include "native/device/offload.h"

namespace windlass {

class Group;

// Any thread may call await(), has() and isInFlight(). Only the thread that makes the
// device's calls may call the other functions.
class Enqueuing {
 public:
  // The device must be open before any other call. Throws std::bad_alloc.
  Enqueuing(Group& group, uint32_t rank, RankDevice& device, Statements& stated);

  // Steps of an operation on a stream, which ranks take together:
  // - findStream: looks the stream up.
  // - takePlace: waits for a free slot for the operation.
  // - run: enqueues the operation, after all ranks have stated their data. It returns once all
  //   ranks have done so.
  Code findStream(const OnStream& on, wl_error_t* error);
  Code takePlace(OffloadPeers& peers, wl_error_t* error);
  Code run(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
           wl_error_t* error);
  // Blocks until nothing is in flight. If `peers` ends the wait, returns why. If the
  // deadline passes, publishes the ranks that hold up the oldest operation.
  Code drain(OffloadPeers& peers) { return awaitOver(last_.load(), peers); }

  // Checks the operations in flight once. Returns the time in ns until the next check, or kNever if
  // there is nothing to watch.
  static constexpr int64_t kNever = -1;
  int64_t look();
  // Ends the watch when the rank leaves the communicator.
  void close();

  // Blocks until the operation is over, for at most limitNs. Sets *isOver to true if it is over.
  // WL_ABORTED: the communicator has ended. Any thread.
  Code await(uint64_t ticket, int64_t limitNs, bool* isOver);
  bool has(uint64_t ticket) const { return ticket != 0 && ticket <= last_.load(); }
  bool isInFlight() const { return over_.load() != last_.load(); }

 private:
  struct InFlight {
    int32_t operation;  // wl_operation
    uint32_t sequence;  // the communicator's sequence of the operation
    uint32_t phases;
    uint32_t cores;
    int64_t deadlineNs;
    int64_t begunNs;  // when its stream was seen to have reached it; 0: not yet
    uint64_t marks[kMostDeviceRanks];  // of the ranks of this process
  };

  // Enqueues an operation that no rank has refused.
  Code hand(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
            wl_error_t* error);
  // Like drain(), for operations up to this one.
  Code awaitOver(uint64_t ticket, OffloadPeers& peers);
  // Adds an operation to those in flight.
  void follow(const InFlight& own);
  Code checkCaptures(wl_error_t* error) const;
  Code makeRoom(uint32_t cores, OffloadPeers& peers, uint32_t* faultyRank, wl_error_t* error);
  OffloadedOperation describe(const DeviceOperation& operation) const;
  InFlight& inFlight(uint64_t ticket) { return inFlight_[ticket % cuda::Streams::kMostInFlight]; }
  InFlight& oldest() { return inFlight(over_.load() + 1); }

  // Records which operations have ended.
  Code poll(wl_error_t* error);
  // Publishes a failure of the oldest operation, if one is in flight. write(text, &faultyRanks)
  // writes its text; its own error is returned and prevents the record.
  template <class Write>
  Code publish(Code code, Write&& write);
  // Publishes a failure of this rank's device.
  void publishDevice(const wl_error_t& why);
  // Publishes a failure if the oldest operation is late.
  Code checkDeadline(wl_error_t* error);
  // Publishes that an operation exceeded its deadline while it waited for those in flight.
  void publishInTheWay(OffloadPeers& peers);
  // Finds the ranks that hold up the oldest operation, and describes why. Either their streams have
  // not reached it, or their cores made the least progress.
  Code findLate(Text* text, std::vector<uint32_t>* ranks, wl_error_t* error);
  // Publishes the failure of an operation that ended early.
  Code publishReported(uint32_t sequence, wl_error_t* error);
  // Sets *has to true if the rank's stream has reached the oldest operation.
  Code hasCome(uint32_t rank, bool* has, wl_error_t* error);
  // Reads the progress of each rank in operation `sequence` of the device; 0: in the oldest
  // operation.
  Code read(uint32_t sequence, OffloadProgress* progress, wl_error_t* error);
  // Finds the ranks whose cores made the least progress in that operation.
  Code leastFar(uint32_t sequence, std::vector<uint32_t>* ranks, uint32_t* phases,
                wl_error_t* error);
  // Stops the operations on devices and wakes waiters, since the communicator has ended.
  void end();

  Group& group_;
  const uint32_t rank_;
  RankDevice& device_;
  cuda::Streams* streams_ = nullptr;
  Statements& stated_;
  uint32_t place_ = 0;  // slot of the operation that is enqueued
  std::vector<InFlight> inFlight_;
  bool hasGivenUp_ = false;         // has withdrawn an operation
  uint32_t captured_ = 0;           // operations that graphs hold
  uint32_t capturedCores_ = 0;      // cores of a rank in them, at most
  int64_t lastNs_ = 0;              // when an operation was last enqueued or ended
  std::atomic<uint64_t> last_{0};   // ticket of the last one enqueued
  std::atomic<uint64_t> over_{0};   // ticket of the last one that its device has left
  std::atomic<uint64_t> whole_{0};  // ticket of the last one that ended without failure

  bool isClosed_ = false;
  std::mutex mutex_;  // guards waiters_, and the stores that end a wait
  std::condition_variable changed_;
  uint32_t waiters_ = 0;
  std::atomic<bool> hasEnded_{false};  // the communicator has ended, and operations were stopped
};

}  // namespace windlass
