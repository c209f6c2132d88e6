// SPDX-License-Identifier: Apache-2.0
// The device executor's host side: states the operation, waits for every rank's ENTER, then runs
// the kernel in line on each of the rank's cores, kernels/in_line.h. Where cores are threads, the
// caller and the rank's workers take those that can go on.
#include "native/comm/executor.h"

namespace windlass {

namespace {

// Looks at a signal before a core says that it waits.
constexpr uint32_t kLooksInLine = 16;

}  // namespace

// A rank's cores in one operation.
class Comm::Cores {
 public:
  Cores(Comm& comm, const InLineKernel& kernel, const Launch& launch)
      : comm_(comm), kernel_(kernel), launch_(launch) {
    const Group& group = comm.group();
    for (uint32_t core = 0; core < count(); ++core) {
      cores_[core].line = {comm.rank(),           core,
                           count(),               comm.sequence(),
                           group.oversubscribed(), kLooksInLine,
                           group.deviceLines(),   group.deviceLineStride()};
    }
    if (comm.workers_ != nullptr) comm.workers_->open(step, this);
  }
  ~Cores() {
    if (comm_.workers_ != nullptr) comm_.workers_->close();
  }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  // Takes each core that nobody runs as far as it goes; whether all are over.
  bool goOn() {
    step(this);
    return over_.load(std::memory_order_acquire) == count();
  }

 private:
  struct alignas(kLine) Core {
    std::atomic<bool> taken{false};
    Position at;  // of whoever took it
    InLine line;
  };

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
    if (!before.left && kernel_.run(launch_, core.line, core.at))
      over_.fetch_add(1, std::memory_order_acq_rel);
    const bool moved = core.at.phase != before.phase || core.at.left != before.left;
    core.taken.store(false, std::memory_order_release);
    if (!moved) return false;
    // Whoever waits for this core may sleep.
    comm_.own_.done.word.fetch_add(0, std::memory_order_seq_cst);
    comm_.group_->wakeSleepers();
    return true;
  }

  Comm& comm_;
  const InLineKernel& kernel_;
  const Launch& launch_;
  std::atomic<uint32_t> over_{0};
  Core cores_[WL_MAX_DEVICE_CORES];
};

Code Comm::runInLine(const InLineKernel& kernel, const Call& call) {
  if (Code code = begin(call.descriptor, call.error); code != WL_OK) return code;
  takeSequence(call);
  Launch launch = launchOf(call);
  kernel.plan(launch);
  Deadline deadline(call.deadlineNs == 0 ? group_->config().deadlineNs : call.deadlineNs,
                    call.startNs);
  claimedPhases_ = 0;
  Code code = awaitPrevious(deadline);
  if (code == WL_OK) {
    fillEntry(call, kernel.staged);
    publishEntry();
    announce(-1);
    code = awaitNeed(kEveryRank, 0, deadline);
  }
  if (code == WL_OK) {
    Cores cores(*this, kernel, launch);
    code = wait([&] { return cores.goOn(); }, kEveryRank, deadline);
  }
  if (code == WL_OK) {
    finishPhase(rank_, kernel.phases(launch));
    announce(-1);
  }
  return finish(code, call.workBytes >= kLongWorkBytes, call.error);
}

}  // namespace windlass
