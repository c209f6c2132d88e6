// SPDX-License-Identifier: Apache-2.0
// Ranks of a group that have devices, their slots, and the turns of their operations. An operation
// takes all devices of its group before it begins on any. Otherwise the kernels of two groups could
// wait for peers behind each other until the deadline.
#pragma once

#include <memory>
#include <mutex>

#include "native/core/devices.h"
#include "native/core/group.h"
#include "native/device/offload.h"

namespace windlass {

struct OffloadSeat {
  std::atomic<uint32_t> enqueued{0};  // operations on streams that the device has not left
  uint32_t device = 0;               // as the process counts devices
  bool isElsewhere = false;          // in another process, which takes its own devices
  uint64_t left = 0;                 // the last operation that the rank has left
  bool hasClosed = false;            // the rank enters no more operations
  bool isGivenBack = false;          // its device's memory was released, or is kept
  bool isKept = false;               // its device's memory is kept for good
  std::unique_ptr<Offload> offload;  // created by the rank's first operation or transfer
};

class OffloadSeats final : public Devices {
 public:
  // Rank r gets device deviceOf(r). Throws std::bad_alloc.
  explicit OffloadSeats(uint32_t ranks) : ranks_(ranks), seats_(new OffloadSeat[ranks]) {
    for (uint32_t rank = 0; rank < ranks; ++rank) seats_[rank].device = deviceOf(rank);
  }
  // Releases what no close() has released.
  ~OffloadSeats() override;

  OffloadSeat& operator[](uint32_t rank) const { return seats_[rank]; }
  // Returns the rank's own Offload, and creates it if there is none. Throws std::bad_alloc.
  Offload& offload(uint32_t rank) const {
    OffloadSeat& seat = seats_[rank];
    if (seat.offload == nullptr) seat.offload.reset(new Offload(seat.device));
    return *seat.offload;
  }
  void join(uint32_t rank) override;
  void keep(uint32_t rank, const Devices& whole, uint32_t former) override;
  void settle(uint32_t ranks) override { ranks_ = ranks; }
  bool mayAccess(uint32_t rank) const override;
  void endEnqueued(Comm& comm) override;

  // Rank whose device is busy, and the operation that uses it.
  struct Busy {
    uint32_t rank;
    const char* with;
  };
  // Returns true once operation `sequence` of this group, called `name`, has all its devices,
  // within `limitNs`. Otherwise fills *busy. Each rank of the operation asks, and calls leave()
  // when it is done.
  bool take(uint64_t sequence, const char* name, int64_t limitNs, Busy* busy);
  void leave(uint32_t rank, uint64_t sequence);

  // Counts the memory that is kept: native/device/kept_devices.h.
  void close(uint32_t rank) override;

 private:
  void giveBack();
  bool takeNow(uint64_t sequence, const char* name, Busy* busy);

  uint32_t ranks_;
  const std::unique_ptr<OffloadSeat[]> seats_;
  uint64_t taken_ = 0;  // the last operation that had its turn
  std::mutex closing_;  // held while devices are released
};

inline OffloadSeats& Group::offloadSeats() const { return static_cast<OffloadSeats&>(*devices_); }

// The turn of one operation. The rank leaves the turn when this object is destroyed.
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
