// SPDX-License-Identifier: Apache-2.0
// A core: its pipes, the flags between them, and its unified buffer. The thread that runs a kernel
// is its scalar pipe; what the kernel issues to the other pipes is held against the rules when it
// is issued, in program order, so that every seed finds the same breaches, and runs later, each
// pipe in order, the pipes in an order that the seed picks from those that flags and barriers
// allow. Program order is always one of them, since a wait_flag follows its set_flag. What the
// scalar pipe had waited for when it issued an instruction has happened before that one.
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
  // `patience` says when its kernel's looks at signals have to end.
  Core(Machine& machine, uint32_t rank, uint32_t block, const Patience& patience = {});
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // While it lives, its thread is the core's scalar pipe.
  class Running {
   public:
    explicit Running(Core& core);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Core* const before_;
  };
  // Whose scalar pipe this thread is; some core is running.
  static Core& current();

  // The kernel's end: all pipes run dry. Called once.
  void finish();

  // What it runs from here on is of a kernel that declares the order of its items; nullptr: of one
  // that does not.
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
  // Thrown out of an item that looks at a signal when waits have to end.
  struct Ended {};
  bool hasEnded() const { return hasEnded_; }

  uint32_t block() const { return block_; }
  uint32_t blocks() const { return machine_.config().blocks; }
  unsigned char* buffer() { return buffer_.data(); }

  // `tile` at an offset of the unified buffer.
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
               std::optional<pto::SaturationMode> saturation);

  void notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op);
  bool look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp);

  // For instructions that are made of others: the next one's origin, and whether flags that it uses
  // are free.
  Origin begin(const char* name);
  bool isPending(pipe_t from, pipe_t to, int id) const;
  // Whether the rule is kept; else reports it with what() as its text.
  template <typename What>
  bool require(bool kept, Rule rule, const Origin& origin, const What& what) {
    if (!kept) machine_.report(rule, origin, what());
    return kept;
  }

 private:
  struct Use {
    const TileRef* tile;
    bool writes;
  };
  // A place in a pipe's queue: an instruction, or the set or the wait of a flag.
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
    uint32_t raised = 0;  // sets that have run and no wait has taken
  };
  // Cycles in which a pipe has work without a gap.
  struct Busy {
    uint64_t begin;
    uint64_t end;
  };
  static uint64_t common(const std::vector<Busy>& a, const std::vector<Busy>& b);
  struct Queue {
    explicit Queue(size_t pipes) : clock(pipes) {}
    std::deque<Entry> entries;
    Clock clock;
    uint32_t weight = 1;  // how often it goes on beside the others
  };

  Queue& queue(Pipe pipe) { return queues_[static_cast<size_t>(pipe)]; }
  size_t number(Pipe pipe) const { return firstPipe_ + static_cast<size_t>(pipe); }
  int flagOf(pipe_t from, pipe_t to, int id, const Origin& origin);

  bool isUsable(const TileRef& tile, const Origin& origin);
  // Whether other ranks whose memory it is are there while the item runs, as its kernel declares.
  bool isThere(const GlobalRef& tensor, const Origin& origin);
  // Whether the kernel may write to the argument; nullptr: it is none that it may not.
  bool isWritten(const char* unwritten, const std::string& what, const Origin& origin);
  // After a look that did not see what it looks for.
  void endWhereLate(const std::string& signal, const Origin& origin);
  bool fit(const GlobalRef& tensor, const TileRef& tile, const Origin& origin);
  bool isUsable(const Region* region, uint64_t address, const Origin& origin);
  bool areUsable(std::initializer_list<const TileRef*> tiles, const Origin& origin);
  bool takes(Op op, DType dtype, const Origin& origin);

  // Issues an instruction whose operands are usable.
  void issue(Pipe pipe, const Origin& origin, uint64_t bytes, std::initializer_list<Use> uses,
             std::function<void()> run);
  // An instruction that breaks a rule has no effect, and counts as what wrote `dst`: what follows
  // from one mistake isn't told as another.
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
  Clock drained_;           // what the last dsb saw over
  bool mustAcquire_ = false;
  const DeclaredOrder* order_ = nullptr;
  bool inItem_ = false;
  uint32_t item_ = 0;
  uint32_t phase_ = 0;
  uint64_t issuedBefore_ = 0;  // the item
  const Patience patience_;
  bool hasEnded_ = false;
  Counters counters_;
  std::vector<Busy> loading_;  // of MTE2, in order
  std::vector<Busy> storing_;  // of MTE3
  std::vector<Span> spans_;
};

}  // namespace windlass::checked
