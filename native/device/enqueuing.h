// SPDX-License-Identifier: Apache-2.0
// Operations that a rank has put on streams of its caller's: how ranks hand one over together, and
// the watch on those that are in flight or that graphs hold, which tells the rank of their end and
// the devices of the communicator's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "native/base/text.h"
#include "native/device/offload.h"
#include "native/device/stream_device.h"

namespace windlass {

class Group;

// Where an operation goes, and what its caller gets.
struct OnStream {
  uint64_t stream;
  uint64_t ticket;  // out; 0: a graph holds it
};

// But await() and close() all is for the thread that the device's calls are made on.
class Enqueuing {
 public:
  // The device is open, or will be before anything else. Throws std::bad_alloc.
  Enqueuing(Group& group, uint32_t rank, RankDevice& device);
  Enqueuing(const Enqueuing&) = delete;
  Enqueuing& operator=(const Enqueuing&) = delete;

  // Collective, as Offload::run(): it returns once all ranks have enqueued it.
  Code run(const Offload::Operation& operation, Code opened, int64_t deadlineNs, OnStream& on,
           OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // Waits until nothing is in flight, or `peers` end that.
  bool drain(OffloadPeers& peers);
  // Why a wait for what is in flight does not go on; at the deadline all are told whose stream has
  // not come to it.
  Code ended(OffloadPeers& peers);

  // One look at what is in flight. In how many ns to look again; kNever: there is nothing to see.
  static constexpr int64_t kNever = -1;
  int64_t look();
  // The rank leaves the communicator, of which nothing is looked at any more. Any thread. Whether
  // nothing is looked at right now, which that has to wait for.
  bool close();

  // Until the operation is over, for no longer than limitNs; *isOver says whether it is.
  // WL_ABORTED: the communicator has ended. Any thread.
  Code await(uint64_t ticket, int64_t limitNs, bool* isOver);
  bool has(uint64_t ticket) const { return ticket != 0 && ticket <= last_.load(); }
  bool isInFlight() const { return over_.load() != last_.load(); }

 private:
  // What ranks tell one another.
  struct Statement {
    int32_t code;
    uint32_t device;
    uint32_t cores;
    uint32_t reserved;
    uint64_t in, out, parts;
    // Where the first two lie, if that is on the rank's own device; else 0.
    uint64_t inThere, outThere;
    uint64_t capture;
    uint64_t mark;
  };
  // Where what a rank brings lies in its window, but what kernels take from where it lies.
  struct Places {
    uint64_t counters, in, out, parts, end;
  };
  struct InFlight {
    const char* name;
    int32_t operation;
    uint32_t sequence;  // as the communicator counts
    uint32_t phases;
    uint32_t cores;
    int64_t deadlineNs;
    int64_t begunNs;  // when its stream was seen to have come to it; 0: not yet
    uint64_t marks[kMostDeviceRanks];  // of the ranks of this process
  };

  // Enqueues what nobody has refused.
  Code hand(const Offload::Operation& operation, int64_t deadlineNs, OnStream& on, uint32_t place,
            OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // WL_OK once all ranks have stated theirs, and all are OK.
  Code agree(Code code, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // The same where what one refuses all do, of which *culprit is then kNobody.
  Code agreeOrRefuse(Code code, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // States where what the rank brings lies. WL_UNSUPPORTED: not on a device.
  Code find(const Offload::Buffers& buffers, wl_error_t* error);
  // Of what a stream was given though not all ranks have enqueued it: it ends with the
  // communicator, and is in flight until then.
  void giveUp(const OnStream& on, uint32_t place);
  // Notes what is in flight from now on.
  void follow(const InFlight& own);
  // Makes room for the next operation; the place that it has.
  Code takePlace(OffloadPeers& peers, uint32_t* place, wl_error_t* error);
  Code checkCaptures(wl_error_t* error) const;
  Code makeRoom(uint32_t cores, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  Places placesOf(const Statement& stated, uint32_t cores) const;
  OffloadedOperation describe(const Offload::Operation& operation, uint32_t cores,
                              int64_t deadlineNs) const;
  InFlight& inFlight(uint64_t ticket) { return inFlight_[ticket % StreamDevice::kMostInFlight]; }

  // Notes what has ended.
  Code poll(wl_error_t* error);
  // Publishes a failure of this rank's device.
  void publishDevice(const wl_error_t& why);
  // Looks whether the oldest one is over in time, and publishes the failure where it is not.
  Code checkDeadline(InFlight& oldest, wl_error_t* error);
  Code publishLate(const InFlight& late, wl_error_t* error);
  // That of what waits for those in flight.
  void publishInTheWay(OffloadPeers& peers);
  // Who holds up the oldest one, and how: whose streams have not come to it, or whose cores are
  // least far in it.
  Code findLate(const InFlight& oldest, Text* text, std::vector<uint32_t>* ranks,
                wl_error_t* error);
  // Publishes that of one that ended before it was over.
  Code publishReported(uint32_t sequence, wl_error_t* error);
  void publish(Code code, const InFlight& of, const std::vector<uint32_t>& culprits,
               const char* message);
  // Whether the rank's stream has come to the oldest one.
  Code hasCome(uint32_t rank, bool* has, wl_error_t* error);
  // Of each rank the phases that all of its cores have ended in the operation of that sequence, by
  // this rank's lines; -1: some have not said so much as that they have begun.
  Code readSteps(uint32_t sequence, uint32_t cores, std::vector<int32_t>* steps,
                 wl_error_t* error);
  // Of the oldest one, as the device counts.
  Code sequenceThere(uint32_t* sequence, wl_error_t* error);
  // The ranks whose cores are least far in the operation of that sequence.
  Code leastFar(uint32_t sequence, uint32_t cores, std::vector<uint32_t>* ranks, uint32_t* phases,
                wl_error_t* error);
  // Tells devices and waiters of the communicator's end.
  void end();

  Group& group_;
  const uint32_t rank_;
  RankDevice& device_;
  StreamDevice* streams_ = nullptr;
  Statement own_ = {};
  std::vector<Statement> stated_;
  std::vector<InFlight> inFlight_;
  std::vector<bool> isHere_;     // the rank lives in this process
  bool spansProcesses_ = false;
  bool isOneDevice_ = false;
  bool hasGivenUp_ = false;
  uint32_t captured_ = 0;           // operations that graphs hold
  uint32_t capturedCores_ = 0;      // of a rank in them, at most
  int64_t lastNs_ = 0;              // when something was enqueued, or ended
  int64_t endedNs_ = 0;             // when they were told to end
  std::atomic<uint64_t> last_{0};   // enqueued
  std::atomic<uint64_t> over_{0};   // of those, that their device has left
  std::atomic<uint64_t> whole_{0};  // and of those, that ended as they should

  std::mutex lookMutex_;  // held while it looks
  bool isClosed_ = false;
  std::mutex mutex_;  // guards the end of a wait
  std::condition_variable changed_;
  uint32_t waiters_ = 0;
  std::atomic<bool> hasEnded_{false};  // the communicator, as all that is in flight was told
};

}  // namespace windlass
