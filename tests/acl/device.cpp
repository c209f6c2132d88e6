// SPDX-License-Identifier: Apache-2.0
// The devices behind the stand-in for the Ascend runtime: the emulator of one architecture runs on
// them what the launcher puts on their streams, and what it refuses is the runtime's error.
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/offload.h"
#include "tests/acl/streams.h"

namespace windlass {
namespace {

// Memory that a kernel reaches: the windows of its group's devices.
std::vector<Reach> reachOf(const OffloadedOperation& operation) {
  std::vector<Reach> all;
  for (uint32_t rank = 0; rank < operation.launch.ranks; ++rank) {
    all.push_back({rank, reinterpret_cast<const void*>(operation.windows[rank]),
                   operation.windowBytes, true});
  }
  return all;
}

class Running final : public stand_in::Work {
 public:
  Running(const OffloadedOperation& operation, uint32_t coresAtOnce)
      : operation_(operation),
        coresAtOnce_(coresAtOnce),
        launch_(operation_.launchHere()),
        session_("offloaded kernel", launch_, operation_.lineHere(0), reachOf(operation_)),
        at_(operation_.line.cores) {}

  stand_in::Progress goOn(std::string* error) override {
    bool over = true;
    bool moved = false;
    uint32_t begun = 0;
    for (uint32_t core = 0; core < at_.size(); ++core) {
      Position& at = at_[core];
      if (isOver_[core]) continue;
      // One that has not begun waits for one that ends.
      if (begun++ == coresAtOnce_) {
        over = false;
        break;
      }
      const Position before = at;
      const auto running = session_.run(core);
      InLine own = operation_.lineHere(core);
      own.looks = 16;
      isOver_[core] = goOnOffloaded<OffloadedKernels>(operation_, launch_, own, at);
      over = over && isOver_[core];
      moved = moved || isOver_[core] || before.phase != at.phase || before.left != at.left;
    }
    if (!over && moved) return stand_in::Progress::kMoved;
    *error = session_.verdict(over).broken;
    if (!error->empty()) return stand_in::Progress::kBroken;
    return over ? stand_in::Progress::kOver : stand_in::Progress::kWaits;
  }

 private:
  const OffloadedOperation operation_;  // the launch's own copy
  const uint32_t coresAtOnce_;
  const Launch launch_;
  CoreSession session_;
  std::vector<Position> at_;
  bool isOver_[WL_STAND_IN_CORES] = {};
};

}  // namespace
}  // namespace windlass

extern "C" __attribute__((visibility("default"))) int32_t standInLaunch(uint32_t cores,
                                                                        void* stream, void* context,
                                                                        void* operation) {
  using namespace windlass;
  const auto& given = *static_cast<const OffloadedOperation*>(operation);
  if (context == nullptr || cores != given.line.cores || cores > WL_STAND_IN_CORES) return 107000;
  stand_in::enqueue(stream, std::make_unique<Running>(given, stand_in::coresOf(stream)));
  return 0;
}
