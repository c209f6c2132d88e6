// SPDX-License-Identifier: Apache-2.0
// Host side of the in-line executor. It states the operation and waits for ENTER of the ranks that
// its kernel concerns. Then it runs the kernel in line on each of the rank's cores
// (windlass/in_line.h). If cores are threads, the caller and the rank's workers run those cores
// that can continue. Each kernel K has K::goOn, which advances one core, and K::Session, which a
// rank's cores share. On checked targets, the session compares the cores' actions with the rules of
// the architecture. Everything except K::goOn is compiled once for each Session.
#pragma once

#include <vector>

#include "native/core/executor/executor.h"
#include "native/core/names.h"
#include "windlass/kernel_table.h"

namespace windlass {

// One core of the rank in the operation in progress.
InLine inLineOf(Comm& comm, uint32_t core);
// Memory that the rank's cores may access in the operation in progress. Throws std::bad_alloc.
std::vector<Reach> reach(Comm& comm, const Call& call, const Launch& launch);
// Writes the lines of an operation that the rank's cores do not run. Does not write them after a
// failure, so that no peer takes the rank's part for done. Returns `code`, or an error if memory is
// short.
Code skipInLine(Comm& comm, Code code, uint32_t phases);

// Progress of cores, by the lines that they write.
class CoreSteps final : public Steps {
 public:
  CoreSteps(Comm& comm, uint32_t phases) : comm_(comm), phases_(phases) {}
  uint32_t count() const override { return phases_; }
  uint32_t over(uint32_t rank) const override;

 private:
  Comm& comm_;
  const uint32_t phases_;
};

// A kernel in the form that its cores run.
template <class Session>
struct InLineCode {
  const char* name;  // in reports of breaches
  uint32_t phases;
  bool (*goOn)(Session&, const Launch&, const InLine&, Position&);
};

// Cores of one rank in one operation.
template <class Session>
class Cores {
 public:
  Cores(Comm& comm, const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
        Deadline& deadline)
      : comm_(comm),
        goOn_(kernel.goOn),
        launch_(launch),
        lateNs_(lateIn(deadline)),
        open_(comm.workers() != nullptr),
        session_(kernel.name, launch, lineOf(0),
                 Session::kChecks ? reach(comm, call, launch) : std::vector<Reach>()) {
    for (uint32_t core = 0; core < count(); ++core) cores_[core].line = lineOf(core);
    if (open_) comm.workers()->open(step, this);
  }
  ~Cores() { close(); }

  // Stops workers from taking cores.
  void close() {
    if (open_) comm_.workers()->close();
    open_ = false;
  }

  // Returns the breaches that a checking session found. No core may run in it any more.
  auto verdict() { return session_.verdict(areOver()); }
  // True if a core stopped because memory ran out.
  bool lackMemory() const { return lackMemory_.load(std::memory_order_acquire); }

  // Advances each core that no thread runs. Returns true if all cores are done. Also returns true
  // if waiting is pointless: a core lacks memory, or broke a rule and may keep others waiting for
  // ever.
  bool goOn() {
    const bool moved = step(this);
    if (areOver()) return true;
    if constexpr (Session::kChecks) {
      return lackMemory() || (!moved && !session_.verdict(false).broken.empty());
    }
    return false;
  }

 private:
  struct alignas(kLine) Core {
    std::atomic<bool> taken{false};
    Position at;  // owned by the thread that took the core
    InLine line;
  };

  // Returns the time at which a waiting kernel reports that its deadline passed. It is an eighth of
  // the limit before the deadline, so that no peer gives up first.
  static int64_t lateIn(Deadline& deadline) {
    const int64_t now = clockNs();
    const int64_t left = deadline.left(now) - deadline.limitNs() / 8;
    return left > INT64_MAX - now ? INT64_MAX : now + left;
  }
  InLine lineOf(uint32_t core) const {
    InLine line = inLineOf(comm_, core);
    line.patience = {ending, this};
    return line;
  }
  static Ending ending(const void* operation) {
    const Cores& own = *static_cast<const Cores*>(operation);
    if (own.comm_.group().failure() != nullptr) return Ending::kFailure;
    return clockNs() < own.lateNs_ ? Ending::kNone : Ending::kDeadline;
  }

  bool areOver() const { return over_.load(std::memory_order_acquire) == count(); }
  uint32_t count() const { return comm_.group().config().inLineCores; }

  static bool step(void* context) {
    Cores& own = *static_cast<Cores*>(context);
    bool moved = false;
    for (uint32_t core = 0; core < own.count(); ++core)
      moved = own.take(own.cores_[core]) || moved;
    return moved;
  }

  // Returns true if the core made progress.
  bool take(Core& core) {
    if (core.taken.load(std::memory_order_relaxed)) return false;
    if (core.taken.exchange(true, std::memory_order_acquire)) return false;
    const Position before = core.at;
    if (!before.left && goOn(core)) over_.fetch_add(1, std::memory_order_acq_rel);
    const bool moved = core.at.phase != before.phase || core.at.left != before.left;
    core.taken.store(false, std::memory_order_release);
    if (!moved) return false;
    // Threads that wait for this core may sleep.
    comm_.group().lines(comm_.rank()).done.word.fetch_add(0, std::memory_order_seq_cst);
    comm_.group().wakeSleepers();
    return true;
  }

  bool goOn(Core& core) {
    if constexpr (Session::kChecks) {
      // After one core ran out of memory, no core continues.
      if (lackMemory()) return false;
      try {
        return goOn_(session_, launch_, core.line, core.at);
      } catch (const std::bad_alloc&) {
        lackMemory_.store(true, std::memory_order_release);
        return false;
      }
    } else {
      return goOn_(session_, launch_, core.line, core.at);
    }
  }

  Comm& comm_;
  bool (*const goOn_)(Session&, const Launch&, const InLine&, Position&);
  const Launch& launch_;
  const int64_t lateNs_;
  bool open_;
  Session session_;
  std::atomic<bool> lackMemory_{false};
  std::atomic<uint32_t> over_{0};
  Core cores_[WL_MAX_DEVICE_CORES];
};

// Runs the kernel on this rank's cores. Call it after all ranks whose memory the cores access have
// entered. Throws std::bad_alloc if the session does.
template <class Session>
Code runCores(Comm& comm, const InLineCode<Session>& kernel, const Call& call,
              const Launch& launch, Deadline& deadline) {
  Cores<Session> cores(comm, kernel, call, launch, deadline);
  Code code = comm.waits().wait([&] { return cores.goOn(); }, kEveryRank, deadline);
  // A peer may fail after it has done its part. If this rank's cores can then finish, the operation
  // succeeds.
  cores.close();
  if (code != WL_OK && cores.goOn()) code = WL_OK;
  if constexpr (Session::kChecks) {
    if (cores.lackMemory()) return comm.failures().publishNoMemory();
    if (const auto verdict = cores.verdict(); !verdict.broken.empty())
      return comm.failures().publishBreach(verdict.faultyRank, verdict.broken.c_str());
  }
  if (code != WL_OK) return code;
  comm.operation().finishPhase(comm.rank(), kernel.phases);
  comm.waits().waiter().announce(-1);
  return WL_OK;
}

// Waits until all ranks that this rank's cores access or wait for have entered the same operation.
template <class K>
Code awaitConcerned(Comm& comm, const Launch& launch, Deadline& deadline) {
  const uint32_t phases = K::phases(launch);
  if (phases > 1) return comm.waits().awaitNeed(kEveryRank, 0, deadline);
  const uint32_t blocks = phases == 0 ? 0 : K::blocks(launch, comm.rank());
  Code code = comm.waits().awaitNeed(K::leavesAfter(launch, comm.rank()), 0, deadline);
  for (uint32_t block = 0; code == WL_OK && block < blocks; ++block) {
    code = comm.waits().awaitNeed(K::needs(launch, comm.rank(), block, 0), 0, deadline);
  }
  return code;
}

// Runs K as the rank's next operation, on its cores.
template <class K>
Code runOnCores(Comm& comm, const Call& call) {
  return operate<K>(comm, call, [&](Launch& launch, Deadline& deadline) {
    Waits& waits = comm.waits();
    const CoreSteps steps(comm, K::phases(launch));
    const ShownSteps shown(waits, steps);
    Code code = enter<K>(comm, call, deadline, [&] { return preparePull<K>(comm, launch); });
    if (code != WL_OK) return code;
    waits.waiter().announce(-1);
    bool runs;
    code = admit<K>(comm, call, launch, deadline, &runs);
    if (!runs) return skipInLine(comm, code, K::phases(launch));
    if (code == WL_OK) code = awaitConcerned<K>(comm, launch, deadline);
    if (code != WL_OK) return code;
    const char* const name = OfLibrary<K>::value ? launch.call->kernel->name
                                                 : operationName(call.descriptor.operation());
    using Session = typename K::Session;
    const InLineCode<Session> kernel = {name, K::phases(launch), K::goOn};
    return comm.orNoMemory([&] { return runCores(comm, kernel, call, launch, deadline); });
  });
}

}  // namespace windlass
