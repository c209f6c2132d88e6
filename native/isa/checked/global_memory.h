// SPDX-License-Identifier: Apache-2.0
// Memory outside the cores: which of it a rank may touch, who touched each byte since the kernel
// began, and what each signal releases. Its functions may be called by cores on several threads.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/isa/checked/breach.h"
#include "native/isa/checked/clock.h"
#include "native/isa/enums.h"
#include "native/isa/checked/operands.h"
#include "native/isa/checked/unified_buffer.h"

namespace windlass::checked {

// What a peer reaches of a rank's memory is a window; the rest only the rank itself.
struct Region {
  uint32_t rank;
  const void* data;
  uint64_t bytes;
  bool isWindow;
  const char* unwritten = nullptr;  // the argument that it is, whose kernel may not write it
};

enum class Touching : uint8_t { kRead, kAdd, kWrite };

class GlobalMemory {
 public:
  // Before any core of who adds it touches it. A window, which every rank adds, counts once.
  void add(const Region& region);
  // Once no core touches it any more: whoever gets the memory next owes nothing to those that did.
  void drop(const Region& region);

  // The region that holds all of these bytes and that the rank may touch; nullptr: there is none.
  const Region* reach(uint32_t rank, uint64_t address, uint64_t bytes) const;
  // Whether it may touch all of the tensor.
  bool reaches(uint32_t rank, const GlobalRef& tensor) const;
  // Of bytes that it may touch: the argument that it may not write and that has some of them, and
  // which no other region has; nullptr: it may write all.
  const char* unwritten(uint32_t rank, uint64_t address, uint64_t bytes) const;
  const char* unwritten(uint32_t rank, const GlobalRef& tensor) const;

  // Records what the instruction does to the tensor's bytes; says with what it isn't ordered.
  std::optional<Clash> touch(const GlobalRef& tensor, Touching touching, const Issue& issue);

  // Writes the signal, and with it releases `released` to whoever sees it; says by whom its line
  // was written before, where that is another core than the one whose first pipe is `writer`.
  std::optional<Clash> notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op,
                              const Clock& released, size_t writer, const Origin& origin);
  // Whether the signal satisfies; then what was released with it joins `clock`.
  bool look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp, Clock* clock);

 private:
  struct Touch {
    Touching touching;
    size_t pipe;  // number in clocks
    uint64_t tick;
    Origin origin;
  };
  // Bytes that the same instructions touched: the last write, and what followed it, with the last
  // of each pipe and kind.
  struct Segment {
    uint64_t end;
    std::vector<Touch> touches;
  };
  struct Writer {
    size_t firstPipe;
    Origin origin;
    bool sets;
  };

  template <typename Takes>
  const Region* find(uint32_t rank, uint64_t address, uint64_t bytes, const Takes& takes) const;

  using Segments = std::map<uint64_t, Segment>;
  void splitAt(uint64_t address);
  std::optional<Clash> touch(Segment& segment, const Touch& touch, const Clock& clock,
                             const GlobalRef& tensor);

  mutable std::mutex regionsMutex_;
  std::list<Region> regions_;  // stay where they are
  std::atomic<bool> hasUnwritten_{false};
  std::mutex mutex_;
  Segments segments_;
  std::unordered_map<uint64_t, Writer> lines_;
  std::unordered_map<uint64_t, Clock> released_;
};

}  // namespace windlass::checked
