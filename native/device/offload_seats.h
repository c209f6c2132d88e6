// SPDX-License-Identifier: Apache-2.0
// The ranks of a group that have devices: which ones, and whose turn it is. An operation has all
// devices of its group before it begins on any: kernels of two groups, of which each waits for
// peers behind the other one's, would wait until the deadline.
#pragma once

#include <memory>
#include <mutex>

#include "native/device/offload.h"

namespace windlass {

struct OffloadSeat {
  std::atomic<uint32_t> enqueued{0};  // operations on streams that the device has not left
  uint32_t device = 0;               // as the process counts them
  bool isElsewhere = false;          // in another process, whose devices it takes by itself
  uint64_t left = 0;                 // the last operation that the rank is out of
  bool hasClosed = false;            // the rank enters nothing any more
  bool isGivenBack = false;          // what its device held, but what is kept
  bool isKept = false;               // that is all of it, for good
  std::unique_ptr<Offload> offload;  // the rank's own, from its first operation or transfer on
};

class OffloadSeats {
 public:
  // Those of the group whose control block has that `id`, and whose ranks join one after another:
  // the same for all that have attached it in this process, since its ranks there have their turn
  // together. Throws std::bad_alloc.
  static std::shared_ptr<OffloadSeats> ofShared(uint64_t id, uint32_t ranks);
  // Rank r has deviceOf(r). Throws std::bad_alloc.
  explicit OffloadSeats(uint32_t ranks) : ranks_(ranks), seats_(new OffloadSeat[ranks]) {
    for (uint32_t rank = 0; rank < ranks; ++rank) seats_[rank].device = deviceOf(rank);
  }
  // Gives back what no close() has.
  ~OffloadSeats();
  OffloadSeats(const OffloadSeats&) = delete;
  OffloadSeats& operator=(const OffloadSeats&) = delete;

  OffloadSeat& operator[](uint32_t rank) const { return seats_[rank]; }
  // The rank's own, which this makes where it has none. Throws std::bad_alloc.
  Offload& offload(uint32_t rank) const {
    OffloadSeat& seat = seats_[rank];
    if (seat.offload == nullptr) seat.offload.reset(new Offload(seat.device));
    return *seat.offload;
  }
  // The rank lives in this process.
  void join(uint32_t rank);
  // It has that device, which whoever attaches the group says alike.
  void place(uint32_t rank, uint32_t device);
  // There are so many ranks, or fewer than at first. Nobody has used them yet.
  void settle(uint32_t ranks) { ranks_ = ranks; }

  // Where it isn't the operation's turn: whose device is busy, and with what.
  struct Busy {
    uint32_t rank;
    const char* with;
  };
  // Whether operation `sequence` of this group, called `name`, has all of its devices, within
  // `limitNs`. Its ranks ask one after another, and each says when it is out.
  bool take(uint64_t sequence, const char* name, int64_t limitNs, Busy* busy);
  void leave(uint32_t rank, uint64_t sequence);

  // The rank has left the communicator and is in no call. The last of those that live here gives
  // back what their devices hold, in no more than 5 s. What a kernel may still touch that did not
  // end, or a call that does not return, is kept and counted: native/device/kept_devices.h.
  void close(uint32_t rank);

 private:
  void giveBack();
  bool takeNow(uint64_t sequence, const char* name, Busy* busy);

  uint32_t ranks_;
  const std::unique_ptr<OffloadSeat[]> seats_;
  uint64_t taken_ = 0;  // the last operation that had its turn
  std::mutex closing_;  // held while devices are given back
};

// A rank's part in the turn of one operation.
class OffloadTurn {
 public:
  OffloadTurn(OffloadSeats& seats, uint32_t rank, uint64_t sequence)
      : seats_(seats), rank_(rank), sequence_(sequence) {}
  ~OffloadTurn() { seats_.leave(rank_, sequence_); }
  OffloadTurn(const OffloadTurn&) = delete;
  OffloadTurn& operator=(const OffloadTurn&) = delete;

 private:
  OffloadSeats& seats_;
  const uint32_t rank_;
  const uint64_t sequence_;
};

}  // namespace windlass
