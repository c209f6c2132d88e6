// SPDX-License-Identifier: Apache-2.0
// The last operations of one rank, always recorded: what a Timeout's message, reports and events
// draw on. One writer, the thread inside the rank's operation; any thread reads, without a lock.
//
// Stamps are CPU ticks, read once an operation, after ENTER is published, while the peers' lines
// travel. The end is stamped only of an operation that waited or moved much; any other lasts some
// microseconds. Nothing but diagnostics depends on a stamp.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/core/control_block.h"

namespace windlass {

// One operation as a reader sees it. Times are CLOCK_MONOTONIC nanoseconds.
struct Recorded {
  Descriptor descriptor;
  uint64_t bytes;
  uint32_t sequence;  // of the last operation that took one, where this one takes none
  int32_t code;       // wl_code; WL_RECORD_INSIDE while in progress; WL_RECORD_ENTERED
  int64_t enteredNs;  // 0 until ENTER is published or a wait turns slow
  int64_t leftNs;     // 0 while inside; enteredNs when the end was not stamped
  int64_t waitedNs;   // in waits that turned slow; 0 while inside
};

// CPU ticks as CLOCK_MONOTONIC: both are read when the control block is made, and again by whoever
// converts stamps taken in between.
class TickScale {
 public:
  struct Mark {
    int64_t ticks;
    int64_t ns;
    static Mark now();
  };

  TickScale(const Mark& first, const Mark& last) : first_(first), last_(last) {}
  // Up to now.
  static TickScale since(const ControlBlock& block) {
    const SharedLines& shared = block.shared();
    return {{shared.madeTicks, shared.madeNs}, Mark::now()};
  }
  // Some time from 0 to the last mark, for any ticks.
  int64_t ns(int64_t ticks) const;

 private:
  Mark first_;
  Mark last_;
};

class FlightRecorder {
 public:
  static constexpr uint64_t kRecords = 64;

  // The writer's: of a rank of another host, whoever takes what its process tells.
  void enter(uint32_t sequence, const Descriptor& descriptor, uint64_t bytes);
  void stampEntry();  // the first one of an operation stands
  void leave(int32_t code, int64_t waitedNs, bool stampEnd);
  // That a rank of another host has entered, of which no more is told.
  void hear(uint32_t sequence, const Descriptor& descriptor);

  // Any thread's. Operations have numbers from 1 on.
  uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  // False when the operation's record is not there, no longer, or not yet whole.
  bool read(uint64_t number, const TickScale& scale, Recorded* out) const;
  // The record of the operation that took this sequence.
  bool find(uint32_t sequence, const TickScale& scale, Recorded* out) const;

 private:
  // `number` is 0 while the rest is rewritten. All stores to the rest are releases and all loads of
  // it acquires: who sees one of them sees the 0 before it, and discards what it read.
  struct alignas(kLine) Slot {
    std::atomic<uint64_t> number;
    std::atomic<uint64_t> what;  // of the Descriptor
    std::atomic<uint64_t> count;
    std::atomic<uint64_t> bytes;
    std::atomic<uint64_t> outcome;  // sequence << 32 | code
    std::atomic<int64_t> enteredTicks;
    std::atomic<int64_t> leftTicks;
    std::atomic<int64_t> waitedNs;
  };
  Slot& current() { return slots_[newest_.load(std::memory_order_relaxed) % kRecords]; }

  alignas(kLine) std::atomic<uint64_t> newest_;
  Slot slots_[kRecords];
};

}  // namespace windlass
