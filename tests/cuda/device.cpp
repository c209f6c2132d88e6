// SPDX-License-Identifier: Apache-2.0
// The GPUs behind the stand-in for NVIDIA's driver: the in-line executor on sim's instructions, as
// kernels/entry.cu has it on a GPU's.
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/all_offloaded.h"
#include "native/base/clock.h"
#include "tests/cuda/streams.h"

namespace windlass {
namespace {

std::atomic<uint32_t> running[64];  // blocks of each device
constexpr int64_t kLateNs = 5'000'000;

class Grid final : public stand_in::Work {
 public:
  Grid(int device, const KernelTable* library, const OffloadedRanks& ranks, uint32_t coresOfRank,
       uint32_t blocks)
      : running_(running[device]), library_(library), ranks_(ranks), coresOfRank_(coresOfRank), blocks_(blocks) {}
  ~Grid() override {
    if (isRunning_) ++stand_in::orphans();
    end();
  }

  stand_in::Progress goOn() override {
    if (!isRunning_ && !begin()) return stand_in::Progress::kWaits;
    bool over = true;
    bool moved = false;
    for (Core& core : cores_) {
      if (core.hasLeft) continue;
      const OffloadedOperation& operation = *core.operation;
      const stand_in::Cores cores = stand_in::coresOf(operation.line.rank);
      const Position before = core.at;
      const bool isLate = cores == stand_in::Cores::kLate && core.line.core >= coresOfRank_ / 2 &&
                          clockNs() - startNs_ < kLateNs;
      const bool runs = cores == stand_in::Cores::kRun || cores == stand_in::Cores::kLate;
      if (runs && !isLate) core.hasLeft = goOn(core);
      if (cores == stand_in::Cores::kWait) core.hasLeft = isStopped(operation);
      if (operation.limitNs != 0 && clockNs() - startNs_ > static_cast<int64_t>(operation.limitNs))
        core.hasLeft = true;
      if (core.hasLeft) leave(core);
      over = over && core.hasLeft;
      moved = moved || isLate || core.hasLeft || before.phase != core.at.phase ||
              before.left != core.at.left;
    }
    if (over) end();
    if (over) return stand_in::Progress::kOver;
    return moved ? stand_in::Progress::kMoved : stand_in::Progress::kWaits;
  }

 private:
  struct Core {
    const OffloadedOperation* operation;
    Launch launch;
    InLine line;
    Position at;
    bool hasLeft;
  };

  bool begin() {
    for (uint32_t others = running_;;) {
      if (others + blocks_ > stand_in::blocksAtOnce()) return false;
      if (running_.compare_exchange_weak(others, others + blocks_)) break;
    }
    isRunning_ = true;
    startNs_ = clockNs();
    for (uint32_t block = 0; block < blocks_; ++block) {
      const OffloadedOperation& operation = *ranks_.operation[block / coresOfRank_];
      InLine line = operation.lineHere(block % coresOfRank_);
      if (operation.counters != 0) line.sequence = countersOf(operation).over + 1;
      line.looks = 16;
      if (library_ != nullptr)
        reinterpret_cast<OffloadedCall*>(operation.call)->misuses.taken.tell = takeMisuse;
      cores_.push_back({&operation, operation.launchHere(), line, {}, false});
    }
    return true;
  }
  void end() {
    if (isRunning_) running_ -= blocks_;
    isRunning_ = false;
  }
  // Copies the misuse to the layout of windlass/library_on_gpu.h.
  static void takeMisuse(const Misuses* to, const Misuse& misuse) {
    auto* own = reinterpret_cast<OffloadedMisuses*>(const_cast<Misuses*>(to));
    if (own->told++ == 0) own->first = misuse;
  }
  bool goOn(Core& core) const {
    if (library_ == nullptr)
      return goOnOffloaded<AllOffloadedKernels>(*core.operation, core.launch, core.line, core.at);
    const KernelEntry& kernel = library_->kernels[core.operation->kernel];
    return kernel.goOn(nullptr, core.launch, core.line, core.at) || isStopped(*core.operation);
  }

  static DeviceCounters& countersOf(const OffloadedOperation& operation) {
    return *reinterpret_cast<DeviceCounters*>(operation.counters);
  }
  static void leave(Core& core) {
    const OffloadedOperation& operation = *core.operation;
    if (!core.at.left && operation.report != 0) {
      __atomic_store_n(reinterpret_cast<uint32_t*>(operation.report), core.line.sequence,
                       __ATOMIC_RELEASE);
    }
    if (core.at.left && core.line.core == 0 && operation.noteBytes != 0) {
      std::memcpy(reinterpret_cast<void*>(operation.noteTo),
                  reinterpret_cast<const void*>(operation.noteFrom), operation.noteBytes);
    }
    if (operation.counters == 0) return;
    DeviceCounters& counters = countersOf(operation);
    if (++counters.ended < core.line.cores) return;
    counters.ended = 0;
    counters.over = core.line.sequence;
  }
  static bool isStopped(const OffloadedOperation& operation) {
    comm::Signal stop(reinterpret_cast<int32_t*>(operation.stop));
    return comm::TTEST(stop, static_cast<int32_t>(operation.stopValue), comm::WaitCmp::EQ);
  }

  std::atomic<uint32_t>& running_;
  const KernelTable* const library_;
  bool isRunning_ = false;
  const OffloadedRanks ranks_;
  const uint32_t coresOfRank_;
  const uint32_t blocks_;
  int64_t startNs_ = 0;
  std::vector<Core> cores_;
};

}  // namespace
}  // namespace windlass

std::unique_ptr<stand_in::Work> stand_in::kernel(int device,
                                                 const windlass::KernelTable* library,
                                                 const windlass::OffloadedRanks& ranks,
                                                 uint32_t coresOfRank, uint32_t blocks) {
  return std::make_unique<windlass::Grid>(device, library, ranks, coresOfRank, blocks);
}

std::atomic<size_t>& stand_in::orphans() {
  static std::atomic<size_t> count{0};
  return count;
}
