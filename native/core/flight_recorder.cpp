// SPDX-License-Identifier: Apache-2.0
#include "native/base/cpu.h"
#include "native/core/flight_recorder.h"

#include <algorithm>

#include "native/base/clock.h"

namespace windlass {
namespace {

constexpr uint64_t outcomeOf(uint32_t sequence, int32_t code) {
  return uint64_t{sequence} << 32 | static_cast<uint32_t>(code);
}

}  // namespace

// Takes the tightest of three measurements, because a thread that loses its core between two reads
// spoils one.
TickScale::Mark TickScale::Mark::now() {
  Mark best = {};
  int64_t tightest = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const int64_t before = cpuTicks();
    const int64_t ns = clockNs();
    const int64_t width = cpuTicks() - before;
    if (width >= tightest) continue;
    tightest = width;
    best = {before + width / 2, ns};
  }
  return best;
}

int64_t TickScale::ns(int64_t ticks) const {
  if (first_.ticks < 0 || first_.ns < 0 || last_.ticks <= first_.ticks || ticks >= last_.ticks)
    return last_.ns;
  const double rate =
      static_cast<double>(last_.ns - first_.ns) / static_cast<double>(last_.ticks - first_.ticks);
  const double ago = static_cast<double>(last_.ticks - std::max<int64_t>(0, ticks)) * rate;
  return ago < 0 || ago >= static_cast<double>(last_.ns) ? 0
                                                         : last_.ns - static_cast<int64_t>(ago);
}

void FlightRecorder::enter(uint32_t sequence, const Descriptor& descriptor, uint64_t bytes) {
  const uint64_t number = newest_.load(std::memory_order_relaxed) + 1;
  Slot& slot = slots_[number % kRecords];
  slot.number.store(0, std::memory_order_relaxed);
  slot.what.store(descriptor.what, std::memory_order_release);
  slot.count.store(descriptor.count, std::memory_order_release);
  slot.bytes.store(bytes, std::memory_order_release);
  slot.outcome.store(outcomeOf(sequence, WL_RECORD_INSIDE), std::memory_order_release);
  slot.enteredTicks.store(0, std::memory_order_release);
  slot.leftTicks.store(0, std::memory_order_release);
  slot.waitedNs.store(0, std::memory_order_release);
  slot.number.store(number, std::memory_order_release);
  newest_.store(number, std::memory_order_release);
}

void FlightRecorder::stampEntry() {
  Slot& slot = current();
  if (slot.enteredTicks.load(std::memory_order_relaxed) == 0) {
    slot.enteredTicks.store(cpuTicks(), std::memory_order_release);
  }
}

uint64_t FlightRecorder::leave(int32_t code, int64_t waitedNs, bool stampEnd) {
  Slot& slot = current();
  slot.waitedNs.store(waitedNs, std::memory_order_release);
  slot.leftTicks.store(stampEnd ? cpuTicks() : slot.enteredTicks.load(std::memory_order_relaxed),
                       std::memory_order_release);
  const auto sequence = static_cast<uint32_t>(slot.outcome.load(std::memory_order_relaxed) >> 32);
  slot.outcome.store(outcomeOf(sequence, code), std::memory_order_release);
  return slot.bytes.load(std::memory_order_relaxed);
}

void FlightRecorder::hear(uint32_t sequence, const Descriptor& descriptor) {
  enter(sequence, descriptor, 0);
  stampEntry();
  leave(WL_RECORD_ENTERED, 0, false);
}

bool FlightRecorder::read(uint64_t number, const TickScale& scale, Recorded* out) const {
  const Slot& slot = slots_[number % kRecords];
  if (number == 0 || slot.number.load(std::memory_order_acquire) != number) return false;
  // Reads the outcome first: its acquire also makes earlier stores visible.
  const uint64_t outcome = slot.outcome.load(std::memory_order_acquire);
  out->sequence = static_cast<uint32_t>(outcome >> 32);
  out->code = static_cast<int32_t>(static_cast<uint32_t>(outcome));
  out->descriptor.what = slot.what.load(std::memory_order_acquire);
  out->descriptor.count = slot.count.load(std::memory_order_acquire);
  out->bytes = slot.bytes.load(std::memory_order_acquire);
  const int64_t entered = slot.enteredTicks.load(std::memory_order_acquire);
  const int64_t left = slot.leftTicks.load(std::memory_order_acquire);
  const int64_t waitedNs = slot.waitedNs.load(std::memory_order_acquire);
  if (slot.number.load(std::memory_order_relaxed) != number) return false;
  const bool inside = out->code == WL_RECORD_INSIDE;
  out->enteredNs = entered == 0 ? 0 : scale.ns(entered);
  out->leftNs = inside ? 0 : scale.ns(left);
  out->waitedNs = inside ? 0 : waitedNs;
  return true;
}

bool FlightRecorder::find(uint32_t sequence, const TickScale& scale, Recorded* out) const {
  const uint64_t last = newest();
  const uint64_t first = last < kRecords ? 1 : last - kRecords + 1;
  for (uint64_t number = last; number >= first; --number) {
    if (read(number, scale, out) && out->sequence == sequence &&
        takesSequence(out->descriptor.operation())) {
      return true;
    }
  }
  return false;
}

}  // namespace windlass
