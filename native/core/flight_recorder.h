// SPDX-License-Identifier: Apache-2.0
// Always records the last operations of one rank. The message of a DeadlineExceeded, reports and
// events use the records. The one writer is the thread inside the rank's operation. Any thread
// reads, without a lock.
//
// Stamps are CPU ticks. An operation reads them once, after it publishes ENTER, while the peers'
// lines travel. The end is stamped only if the operation failed, waited or moved much; others last
// some microseconds. Only diagnostics depend on stamps.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/core/control_block.h"

namespace windlass {

// One operation as a reader sees it. Times are CLOCK_MONOTONIC nanoseconds.
struct Recorded {
  Descriptor descriptor;
  uint64_t bytes;
  uint32_t sequence;  // sequence of the last counted operation, if this one takes none
  int32_t code;       // wl_code; WL_RECORD_INSIDE while in progress; WL_RECORD_ENTERED
  int64_t enteredNs;  // 0 until ENTER is published or a wait turns slow
  int64_t leftNs;     // 0 while inside; enteredNs when the end was not stamped
  int64_t waitedNs;   // in waits that turned slow; 0 while inside
};

// Converts CPU ticks to CLOCK_MONOTONIC. Both are read when the control block is made, and again by
// the thread that converts stamps taken in between.
class TickScale {
 public:
  struct Mark {
    int64_t ticks;
    int64_t ns;
    static Mark now();
  };

  TickScale(const Mark& first, const Mark& last) : first_(first), last_(last) {}
  // The scale from the block's creation to now.
  static TickScale since(const ControlBlock& block) {
    const SharedLines& shared = block.shared();
    return {{shared.madeTicks, shared.madeNs}, Mark::now()};
  }
  // Converts a stamp in ticks to nanoseconds of CLOCK_MONOTONIC. The result is at least 0 and at
  // most the time of the last mark.
  int64_t ns(int64_t ticks) const;

 private:
  Mark first_;
  Mark last_;
};

class FlightRecorder {
 public:
  static constexpr uint64_t kRecords = 64;

  // Called by the writer only. For a rank of another host, the writer is the thread that takes its
  // process's messages.
  void enter(uint32_t sequence, const Descriptor& descriptor, uint64_t bytes);
  void stampEntry();  // only an operation's first stamp counts
  // Returns the bytes of the operation that ends.
  uint64_t leave(int32_t code, int64_t waitedNs, bool stampEnd);
  // Records that a rank of another host has entered, if nothing more is known.
  void hear(uint32_t sequence, const Descriptor& descriptor);

  // Thread-safe. Operations are numbered from 1.
  uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  // Returns false if the operation's record does not exist yet, was overwritten, or is incomplete.
  bool read(uint64_t number, const TickScale& scale, Recorded* out) const;
  // Finds the record of the counted operation with this sequence. Returns false if there is none.
  bool find(uint32_t sequence, const TickScale& scale, Recorded* out) const;

 private:
  // `number` is 0 during a rewrite. All stores to the other members are releases and all loads are
  // acquires. A reader that sees one of these stores also sees the 0 before it, and discards what
  // it read.
  struct alignas(kLine) Slot {
    std::atomic<uint64_t> number;
    std::atomic<uint64_t> what;  // Descriptor::what
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
