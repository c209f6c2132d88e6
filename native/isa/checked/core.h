// SPDX-License-Identifier: Apache-2.0
// A core: its pipes, the flags between them, and its unified buffer. The thread that runs a kernel
// is the core's scalar pipe.
//
// Instructions for the other pipes are checked when the kernel issues them. This is in program
// order, so every seed finds the same breaches. The instructions run later, in order on each pipe.
// The seed selects the order between pipes from the orders that flags and barriers allow. Program
// order is always allowed, because a wait_flag follows its set_flag. An instruction happens after
// everything that the scalar pipe had waited for when it issued the instruction.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <random>

#include "native/isa/checked/declared.h"
#include "native/isa/checked/machine.h"
#include "native/isa/checked/unified_buffer.h"

namespace windlass::checked {

class Core {
 public:
  // `patience` says when the kernel must stop looking at signals.
  Core(Machine& machine, uint32_t rank, uint32_t block, const Patience& patience = {});
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Makes the calling thread the core's scalar pipe during the lifetime of this object.
  class Running {
   public:
    explicit Running(Core& core);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Core* const before_;
  };
  // Returns the core whose scalar pipe is this thread. Aborts if there is none.
  static Core& current();

  // Ends the kernel once: reports flags that are still set, and runs the queued instructions.
  void finish();

  // Sets the declared item order of the kernel that runs next. nullptr if it declares none.
  void declare(const DeclaredOrder* order) { order_ = order; }
  void beginItem(uint32_t block, uint32_t phase) {
    inItem_ = true;
    item_ = block;
    phase_ = phase;
    issuedBefore_ = issued_;
  }
  void endItem() {
    inItem_ = false;
    issuedBefore_ = 0;
  }
  // Thrown by a look at a signal within an item when waits have to end.
  struct Ended {};
  bool hasEnded() const { return hasEnded_; }

  uint32_t block() const { return block_; }
  uint32_t blocks() const { return machine_.config().blocks; }
  unsigned char* buffer() { return buffer_.data(); }

  // Places `tile` at an offset of the unified buffer.
  Placement place(const TileRef& tile, uint64_t offset);

  void setFlag(pipe_t from, pipe_t to, int id, const char* name = "set_flag");
  void waitFlag(pipe_t from, pipe_t to, int id, const char* name = "wait_flag");
  void barrier(pipe_t pipe);
  void drainStores();
  void maintainCache(const void* address);

  void load(const TileRef& tile, const GlobalRef& tensor, const char* name = "TLOAD");
  void store(const GlobalRef& tensor, const TileRef& tile, bool adds, const char* name = "TSTORE");
  void combine(const char* name, Op op, const TileRef& dst, const TileRef& a, const TileRef& b);
  void combineScalar(const char* name, Op op, const TileRef& dst, const TileRef& a,
                     uint64_t scalar);
  void fill(const TileRef& dst, uint64_t scalar);
  void move(const TileRef& dst, const TileRef& src);
  void convert(const TileRef& dst, const TileRef& src, const TileRef* scratch, pto::RoundMode mode,
               const pto::SaturationMode* saturation);

  void notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op);
  bool look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp);

  // For composite instructions: begin() returns the origin of the next instruction, isPending()
  // reports whether a flag is set.
  Origin begin(const char* name);
  bool isPending(pipe_t from, pipe_t to, int id) const;
  // Returns `kept`. If it is false, reports a breach of the rule with the text what().
  template <typename What>
  bool require(bool kept, Rule rule, const Origin& origin, const What& what) {
    if (!kept) machine_.report(rule, origin, what());
    return kept;
  }

 private:
  using Tiles = std::initializer_list<const TileRef*>;
  // An entry of a pipe's queue: an instruction, or the set or wait of a flag.
  struct Entry {
    std::function<void()> run;
    int flag = -1;
    bool waits = false;
  };
  struct Flag {
    explicit Flag(size_t pipes) : released(pipes) {}
    bool pending = false;     // in program order
    uint64_t waitedTick = 0;  // of the pipe that waited last
    Clock released;
    Origin setBy = {};
    uint32_t raised = 0;  // sets that have run but that no wait has consumed
  };
  // Cycles in which a pipe is busy without a gap.
  struct Busy {
    uint64_t begin;
    uint64_t end;
  };
  static uint64_t common(const std::vector<Busy>& a, const std::vector<Busy>& b);
  struct Queue {
    explicit Queue(size_t pipes) : clock(pipes) {}
    std::deque<Entry> entries;
    Clock clock;
    uint32_t weight = 1;  // how often it is chosen relative to the others
  };

  Queue& queue(Pipe pipe) { return queues_[static_cast<size_t>(pipe)]; }
  size_t number(Pipe pipe) const { return firstPipe_ + static_cast<size_t>(pipe); }
  int flagOf(pipe_t from, pipe_t to, int id, const Origin& origin);

  bool isUsable(const TileRef& tile, const Origin& origin);
  // Returns true if, by the kernel's declaration, the tensor's owner has entered and stays while
  // the item runs. Otherwise reports a breach.
  bool isThere(const GlobalRef& tensor, const Origin& origin);
  // Returns true if `unwritten` is nullptr. Otherwise it names a read-only argument, and a breach
  // is reported.
  bool isWritten(const char* unwritten, const std::string& what, const Origin& origin);
  // Called after a failed look at a signal. Throws Ended if waits have to end.
  void endWhereLate(const std::string& signal, const Origin& origin);
  bool fit(const GlobalRef& tensor, const TileRef& tile, const Origin& origin);
  bool isUsable(const Region* region, uint64_t address, const Origin& origin);
  // Returns true if all tiles are usable, and `dst` overlaps no source in part.
  bool areUsable(const TileRef& dst, Tiles sources, const Origin& origin);
  bool takes(Op op, DType dtype, const Origin& origin);

  // Issues an instruction whose operands are usable.
  void issue(Pipe pipe, const Origin& origin, uint64_t bytes, Tiles reads, Tiles writes,
             std::function<void()> run);
  // Issues a vector instruction from `sources` to `dst`, if the tiles are usable and `fit`. what()
  // describes tiles that don't fit one another.
  template <typename What>
  void compute(const Origin& origin, Op op, const TileRef& dst, Tiles sources, bool fit,
               const What& what, std::function<void()> run);
  // Handles an instruction that breaks a rule. It does not run, but it counts as the writer of
  // `dst`, so that one mistake is not reported twice.
  void refuse(Pipe pipe, const Origin& origin, const TileRef& dst);
  void account(Pipe pipe, const Origin& origin, uint64_t bytes);
  void reportClash(const std::optional<Clash>& clash, const Origin& origin);
  void enqueue(Pipe pipe, Entry entry);

  bool canRun(const Queue& queue) const;
  bool step(bool anyPipe);
  void changeMood();

  Machine& machine_;
  const uint32_t rank_;
  const uint32_t block_;
  const size_t firstPipe_;
  UnifiedBuffer buffer_;
  std::vector<Queue> queues_;
  std::vector<Flag> flags_;
  std::mt19937_64 random_;
  uint32_t moodLeft_ = 0;
  uint32_t eagerness_ = 0;
  uint64_t issued_ = 0;
  uint32_t placed_ = 0;
  uint64_t lastStore_ = 0;  // tick of MTE3
  Clock drained_;           // what the last dsb waited for
  bool mustAcquire_ = false;
  const DeclaredOrder* order_ = nullptr;
  bool inItem_ = false;
  uint32_t item_ = 0;
  uint32_t phase_ = 0;
  uint64_t issuedBefore_ = 0;  // instructions before the item
  const Patience patience_;
  bool hasEnded_ = false;
  Counters counters_;
  std::vector<Busy> loading_;  // busy times of MTE2, in order
  std::vector<Busy> storing_;  // busy times of MTE3
  std::vector<Span> spans_;
};

}  // namespace windlass::checked
