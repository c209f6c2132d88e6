// SPDX-License-Identifier: Apache-2.0
#include "native/comm/offload_seats.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "native/base/clock.h"
#include "native/comm/kept_devices.h"

namespace windlass {
namespace {

constexpr int64_t kCloseLimitNs = 5'000'000'000;

// The devices of this process, which its groups take in turn.
struct Holder {
  const OffloadSeats* seats;  // nullptr: nobody
  uint64_t sequence;
  const char* name;
};
std::mutex mutex;  // guards what follows, and whose turn it is in all groups
std::condition_variable changed;
Holder holders[kMostDeviceRanks];

}  // namespace

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
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_for(lock, std::chrono::nanoseconds(limitNs),
                          [&] { return takeNow(sequence, name, busy); });
}

void OffloadSeats::leave(uint32_t rank, uint64_t sequence) {
  const std::lock_guard<std::mutex> lock(mutex);
  seats_[rank].left = sequence;
  const uint32_t device = seats_[rank].device;
  Holder& holder = holders[device];
  if (holder.seats != this) return;
  // Ranks that share the device leave it together.
  for (uint32_t other = 0; other < ranks_; ++other) {
    const OffloadSeat& seat = seats_[other];
    if (!seat.isElsewhere && seat.device == device && seat.left < holder.sequence) return;
  }
  holder = {};
  changed.notify_all();
}

OffloadSeats::~OffloadSeats() {
  bool keeps = false;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const Offload* offload = seats_[rank].offload.get();
    keeps = keeps || (offload != nullptr && offload->isStuck());
  }
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (seats_[rank].offload != nullptr) seats_[rank].offload->beginToClose(keeps);
  }
  const int64_t untilNs = clockNs() + kCloseLimitNs;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    std::unique_ptr<Offload>& own = seats_[rank].offload;
    if (own == nullptr || (own->closed(untilNs) && !keeps)) continue;
    KeptDevices::addWindow(own->windowBytes());
    // It stays, and all that its device has of it.
    static_cast<void>(own.release());
  }
}

}  // namespace windlass
