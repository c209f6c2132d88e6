// SPDX-License-Identifier: Apache-2.0
// Memory outside the cores. It records the regions that each rank may touch, the instructions that
// touched each byte since the kernel began, and the clock that each signal releases. Cores may call
// its functions from several threads.
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

// A region of a rank's memory.
using Region = Reach;

enum class Touching : uint8_t { kRead, kAdd, kWrite };

class GlobalMemory {
 public:
  // Adds a region before a core of the adding rank touches it. A window, which every rank adds,
  // counts once.
  void add(const Region& region);
  // Removes a region that no core touches any more, with its access history.
  void drop(const Region& region);

  // Returns the region that holds all of these bytes and that the rank may touch, or nullptr.
  const Region* reach(uint32_t rank, uint64_t address, uint64_t bytes) const;
  // Returns true if the rank may touch the whole tensor.
  bool reaches(uint32_t rank, const GlobalRef& tensor) const;
  // Returns the name of an argument that the kernel may not write and that holds some of these
  // bytes. Bytes that also belong to a region that the rank may write don't count. Returns nullptr
  // if the rank may write all of them. The rank must be allowed to touch them.
  const char* unwritten(uint32_t rank, uint64_t address, uint64_t bytes) const;
  const char* unwritten(uint32_t rank, const GlobalRef& tensor) const;

  // Records the instruction's access to the tensor. Returns a clash with an earlier access that is
  // not ordered before it.
  std::optional<Clash> touch(const GlobalRef& tensor, Touching touching, const Issue& issue);

  // Writes the signal, and releases the clock `released` with it. Returns a clash if another core
  // wrote to the signal's line before, unless both only add. `writer` is the first pipe of this
  // core.
  std::optional<Clash> notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op,
                              const Clock& released, size_t writer, const Origin& origin);
  // Returns true if the signal's value satisfies the comparison. If so, joins the released clock
  // into `clock`.
  bool look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp, Clock* clock);

 private:
  struct Touch {
    Touching touching;
    size_t pipe;  // number of the pipe in clocks
    uint64_t tick;
    Origin origin;
  };
  // Bytes with the same access history: the last write and the accesses after it, at most one for
  // each pipe and kind.
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

  void splitAt(uint64_t address);
  std::optional<Clash> touch(Segment& segment, const Touch& touch, const Clock& clock,
                             const GlobalRef& tensor);

  mutable std::mutex regionsMutex_;
  std::list<Region> regions_;  // a list keeps addresses stable
  std::atomic<bool> hasUnwritten_{false};
  std::mutex mutex_;
  std::map<uint64_t, Segment> segments_;
  std::unordered_map<uint64_t, Writer> lines_;
  std::unordered_map<uint64_t, Clock> released_;
};

}  // namespace windlass::checked
