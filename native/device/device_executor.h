// SPDX-License-Identifier: Apache-2.0
// The device executor's host side: states the operation, waits for the ENTER of those that its
// kernel concerns, then runs the kernel in line on each of the rank's cores, windlass/in_line.h.
// Where cores are threads, the caller and the rank's workers take those that can go on. Each
// kernel K has K::goOn, which takes one core on, and K::Session, which a rank's cores share. On
// targets that check, the session compares what cores do with what the architecture allows. All
// but K::goOn is compiled once for each Session.
#pragma once

#include <string>
#include <vector>

#include "native/core/executor.h"
#include "native/core/names.h"
#include "windlass/kernel_table.h"

namespace windlass {

// A kernel as its cores run it.
template <class Session>
struct Comm::InLineCode {
  const char* name;  // in reports of breaches
  uint32_t phases;
  bool (*goOn)(Session&, const Launch&, const InLine&, Position&);
};

// A rank's cores in one operation.
template <class Session>
class Comm::Cores {
 public:
  Cores(Comm& comm, const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
        Deadline& deadline)
      : comm_(comm),
        goOn_(kernel.goOn),
        launch_(launch),
        lateNs_(lateIn(deadline)),
        open_(comm.workers_ != nullptr),
        session_(kernel.name, launch, lineOf(0),
                 Session::kChecks ? comm.reach(call, launch) : std::vector<Reach>()) {
    for (uint32_t core = 0; core < count(); ++core) cores_[core].line = lineOf(core);
    if (open_) comm.workers_->open(step, this);
  }
  ~Cores() { close(); }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  // Workers take none any more.
  void close() {
    if (open_) comm_.workers_->close();
    open_ = false;
  }

  // What a session that checks says, which no core runs in any more.
  auto verdict() { return session_.verdict(areOver()); }
  // Whether a core could not go on for lack of memory.
  bool lackMemory() const { return lackMemory_.load(std::memory_order_acquire); }

  // Takes each core that nobody runs as far as it goes; whether all are over, or waiting is: a core
  // lacks memory, or one broke something, and what waits for it may wait for ever.
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
    Position at;  // of whoever took it
    InLine line;
  };

  // A kernel that waits by itself is told as such before a peer gives it up.
  static int64_t lateIn(Deadline& deadline) {
    const int64_t now = clockNs();
    const int64_t left = deadline.left(now) - deadline.limitNs() / 8;
    return left > INT64_MAX - now ? INT64_MAX : now + left;
  }
  InLine lineOf(uint32_t core) const {
    InLine line = comm_.inLine(core);
    line.patience = {ending, this};
    return line;
  }
  static Ending ending(const void* operation) {
    const Cores& own = *static_cast<const Cores*>(operation);
    if (own.comm_.group_->failure() != nullptr) return Ending::kFailure;
    return clockNs() < own.lateNs_ ? Ending::kNone : Ending::kDeadline;
  }

  bool areOver() const { return over_.load(std::memory_order_acquire) == count(); }
  uint32_t count() const { return comm_.group().config().deviceCores; }

  static bool step(void* context) {
    Cores& own = *static_cast<Cores*>(context);
    bool moved = false;
    for (uint32_t core = 0; core < own.count(); ++core)
      moved = own.take(own.cores_[core]) || moved;
    return moved;
  }

  // Whether the core came further.
  bool take(Core& core) {
    if (core.taken.load(std::memory_order_relaxed)) return false;
    if (core.taken.exchange(true, std::memory_order_acquire)) return false;
    const Position before = core.at;
    if (!before.left && goOn(core)) over_.fetch_add(1, std::memory_order_acq_rel);
    const bool moved = core.at.phase != before.phase || core.at.left != before.left;
    core.taken.store(false, std::memory_order_release);
    if (!moved) return false;
    // Whoever waits for this core may sleep.
    comm_.own_.done.word.fetch_add(0, std::memory_order_seq_cst);
    comm_.group_->wakeSleepers();
    return true;
  }

  bool goOn(Core& core) {
    if constexpr (Session::kChecks) {
      // Where one stopped midway none goes on.
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

template <class K>
Code Comm::runInLine(const Call& call) {
  return operate<K>(call, [&](Launch& launch, Deadline& deadline) {
    shownPhases_ = K::phases(launch);
    Code code = enter<K>(call, deadline, [&] { return preparePull<K>(launch); });
    if (code != WL_OK) return code;
    waiter_.announce(-1);
    code = awaitConcerned<K>(launch, deadline);
    if (code != WL_OK) return code;
    if constexpr (Pulls<K>::value) {
      if (group_->config().spansProcesses) {
        code = awaitNeed(kEveryRank, 0, deadline);
        if (code != WL_OK) return code;
        if (pulls(launch)) {
          code = pull(K::kPull, call, launch, deadline);
          return skipInLine(code, K::phases(launch));
        }
      }
    }
    if constexpr (Asks<K>::value) {
      bool runs = false;
      if (Code asked = ask<K>(launch, &runs); asked != WL_OK) return asked;
      if (!runs) launch.phases = 0;
      if (runs && call.far != nullptr) {
        code = pullItems(call, launch, deadline);
        return skipInLine(code, launch.phases);
      }
    }
    const char* name;
    if constexpr (OfLibrary<K>::value) {
      name = launch.call->kernel->name;
    } else {
      name = operationName(call.descriptor.operation());
    }
    return runCores<typename K::Session>({name, K::phases(launch), K::goOn}, call, launch,
                                         deadline);
  });
}

// Runs the kernel on this rank's cores, once all that they touch has entered.
template <class Session>
Code Comm::runCores(const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
                    Deadline& deadline) {
  if constexpr (Session::kChecks) {
    return orNoMemory([&] { return goOnWithCores(kernel, call, launch, deadline); });
  } else {
    return goOnWithCores(kernel, call, launch, deadline);
  }
}

template <class Session>
Code Comm::goOnWithCores(const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
                         Deadline& deadline) {
  Cores<Session> cores(*this, kernel, call, launch, deadline);
  Code code = wait([&] { return cores.goOn(); }, kEveryRank, deadline);
  // A peer may have failed after its part: what this rank waited for is there then, though a
  // worker may have been about to see it.
  cores.close();
  if (code != WL_OK && cores.goOn()) code = WL_OK;
  if constexpr (Session::kChecks) {
    if (cores.lackMemory()) return failures_.publishNoMemory();
    if (const auto verdict = cores.verdict(); !verdict.broken.empty())
      return failures_.publishBreach(verdict.culprit, verdict.broken.c_str());
  }
  if (code != WL_OK) return code;
  finishPhase(rank_, kernel.phases);
  waiter_.announce(-1);
  return WL_OK;
}

// Waits until every rank whose memory this one's cores touch, or that they wait for, has entered
// and calls the same.
template <class K>
Code Comm::awaitConcerned(const Launch& launch, Deadline& deadline) {
  const uint32_t phases = K::phases(launch);
  if (phases > 1 || Asks<K>::value) return awaitNeed(kEveryRank, 0, deadline);
  const uint32_t blocks = phases == 0 ? 0 : K::blocks(launch, rank_);
  Code code = awaitNeed(K::leavesAfter(launch, rank_), 0, deadline);
  for (uint32_t block = 0; code == WL_OK && block < blocks; ++block) {
    code = awaitNeed(K::needs(launch, rank_, block, 0), 0, deadline);
  }
  return code;
}

}  // namespace windlass
