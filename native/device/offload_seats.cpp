// SPDX-License-Identifier: Apache-2.0
#include "native/device/offload_seats.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>

#include "native/base/clock.h"
#include "native/base/yielding.h"
#include "native/device/kept_devices.h"

namespace windlass {
namespace {

constexpr int64_t kCloseLimitNs = 5'000'000'000;
// Time that a rank yields before it sleeps to wait for its turn.
constexpr int64_t kYieldsNs = 1'000'000;

// Operation that holds a device of this process. Groups take devices in turn.
struct Holder {
  const OffloadSeats* seats;  // nullptr: nobody
  uint64_t sequence;
  const char* name;
};
std::mutex seatsMutex;  // guards what follows, and the turns of all groups
std::condition_variable changed;
Holder holders[kMostDeviceRanks];
std::map<uint64_t, std::weak_ptr<OffloadSeats>> shared;  // keyed by group id

}  // namespace

std::shared_ptr<Devices> Devices::make(uint32_t ranks) {
  return std::make_shared<OffloadSeats>(ranks);
}

// The ranks share the slots, since they take their turns together. They join one after another.
std::shared_ptr<Devices> Devices::ofShared(uint64_t id, uint32_t ranks) {
  const std::lock_guard<std::mutex> lock(seatsMutex);
  for (auto each = shared.begin(); each != shared.end();)
    each = each->second.expired() ? shared.erase(each) : std::next(each);
  std::weak_ptr<OffloadSeats>& known = shared[id];
  if (std::shared_ptr<OffloadSeats> seats = known.lock()) return seats;
  auto made = std::make_shared<OffloadSeats>(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) (*made)[rank].isElsewhere = true;
  known = made;
  return made;
}

void OffloadSeats::join(uint32_t rank) {
  const std::lock_guard<std::mutex> lock(seatsMutex);
  seats_[rank].isElsewhere = false;
}

void OffloadSeats::keep(uint32_t rank, const Devices& whole, uint32_t former) {
  const uint32_t device = static_cast<const OffloadSeats&>(whole)[former].device;
  const std::lock_guard<std::mutex> lock(seatsMutex);
  uint32_t& known = seats_[rank].device;
  if (known != device) known = device;
}

bool OffloadSeats::mayAccess(uint32_t rank) const {
  const OffloadSeat& seat = seats_[rank];
  // An unfinished kernel on a kept device may access the memory, whatever the ranks do.
  return seat.enqueued.load() != 0 || (!seat.isElsewhere && KeptDevices::has(seat.device));
}

bool OffloadSeats::takeNow(uint64_t sequence, const char* name, Busy* busy) {
  if (taken_ >= sequence) return true;
  const auto isOut = [&](uint32_t rank) {
    return seats_[rank].isElsewhere || seats_[rank].left >= sequence;
  };
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const Holder& holder = holders[seats_[rank].device];
    if (isOut(rank) || holder.seats == nullptr) continue;
    *busy = {rank, holder.name};
    return false;
  }
  taken_ = sequence;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (!isOut(rank)) holders[seats_[rank].device] = {this, sequence, name};
  }
  return true;
}

bool OffloadSeats::take(uint64_t sequence, const char* name, int64_t limitNs, Busy* busy) {
  const auto takes = [&] { return takeNow(sequence, name, busy); };
  const auto looks = [&] {
    const auto lock = lockYielding(seatsMutex);
    return takes();
  };
  if (yieldUntil(looks, std::min(limitNs, kYieldsNs))) return true;
  std::unique_lock<std::mutex> lock(seatsMutex);
  return changed.wait_for(lock, std::chrono::nanoseconds(limitNs), takes);
}

void OffloadSeats::leave(uint32_t rank, uint64_t sequence) {
  const auto lock = lockYielding(seatsMutex);
  seats_[rank].left = sequence;
  const uint32_t device = seats_[rank].device;
  Holder& holder = holders[device];
  if (holder.seats != this) return;
  // A device is free once all ranks that share it have left the operation.
  for (uint32_t other = 0; other < ranks_; ++other) {
    const OffloadSeat& seat = seats_[other];
    if (!seat.isElsewhere && seat.device == device && seat.left < holder.sequence) return;
  }
  holder = {};
  changed.notify_all();
}

void OffloadSeats::close(uint32_t rank) {
  {
    const std::lock_guard<std::mutex> lock(seatsMutex);
    seats_[rank].hasClosed = true;
    for (uint32_t other = 0; other < ranks_; ++other)
      if (!seats_[other].isElsewhere && !seats_[other].hasClosed) return;
  }
  giveBack();
}

OffloadSeats::~OffloadSeats() {
  giveBack();
  for (uint32_t rank = 0; rank < ranks_; ++rank)
    if (seats_[rank].isKept) static_cast<void>(seats_[rank].offload.release());
}

void OffloadSeats::giveBack() {
  const std::lock_guard<std::mutex> closing(closing_);
  const auto forEachHeld = [&](auto&& visit) {
    for (uint32_t rank = 0; rank < ranks_; ++rank)
      if (seats_[rank].offload != nullptr && !seats_[rank].isGivenBack) visit(seats_[rank]);
  };
  bool keeps = false;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const OffloadSeat& seat = seats_[rank];
    keeps = keeps || seat.isKept || (seat.offload != nullptr && seat.offload->isStuck());
  }
  forEachHeld([&](OffloadSeat& seat) { seat.offload->beginToClose(keeps); });
  const int64_t untilNs = clockNs() + kCloseLimitNs;
  forEachHeld([&](OffloadSeat& seat) {
    seat.isGivenBack = true;
    seat.isKept = !seat.offload->closed(untilNs) || keeps;
    if (seat.isKept) KeptDevices::addWindow(seat.offload->windowBytes());
  });
}

}  // namespace windlass
