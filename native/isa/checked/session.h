// SPDX-License-Identifier: Apache-2.0
// The cores of one rank in one operation, as the device executor goes on with them, on the machine
// that the operation's ranks of this process share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/isa/checked/core.h"
#include "native/isa/checked/machine.h"
#include "native/isa/checked/profile.h"
#include "windlass/kernel.h"

namespace windlass::checked {

// On an operation, as far as its ranks have come.
struct Verdict {
  std::string broken;    // a line for each breach; empty: none
  uint32_t culprit = 0;  // whose core broke something first
};

class Session {
 public:
  static constexpr bool kChecks = true;
  using Order = DeclaredOrder;

  // `line` is one of the rank's cores. `reach` says what the kernel may touch: of its peers, the
  // same from whichever rank, and of its own memory. `recorder` takes what was counted.
  Session(const Architecture& architecture, const char* kernel, uint32_t ranks, const InLine& line,
          const std::vector<Reach>& reach, const RunRecorder& recorder = kOwnRuns);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // While it lives, its thread runs that core.
  Core::Running run(uint32_t core) { return Core::Running(*cores_[core]); }
  // A core whose kernel waited when all waits had to end goes on no more.
  using Ended = Core::Ended;
  bool hasEnded(uint32_t core) const { return cores_[core]->hasEnded(); }
  // On one thread. `over`: all cores are; else they may go on, and this is as far as they came.
  Verdict verdict(bool over);

 private:
  std::shared_ptr<Machine> machine_;
  std::vector<Region> own_;
  std::vector<std::unique_ptr<Core>> cores_;
};

// Runs `body` as a kernel of one rank with one core, which may touch the memory of the views as its
// own; empty, or what it broke.
template <typename Body>
std::string runAlone(const Architecture& architecture, const char* kernel,
                     const std::vector<StridedView>& views, const Body& body);

// Of the bytes from the first element of a view to its last.
Reach reachOf(uint32_t rank, const StridedView& view);

// Of the order in which pipes run, of an operation: WINDLASS_PIPE_SEED, or the sequence.
uint64_t seedOf(uint32_t sequence);
// nullptr, or why WINDLASS_PIPE_SEED is not obeyed: it is no number of 64 bits.
const char* seedError() noexcept;
// A value of it, which may be nullptr or "", and what seedError() would say of it.
struct SeedChoice {
  bool isGiven;
  uint64_t seed;
  char error[128];  // "": none
};
SeedChoice chooseSeed(const char* request) noexcept;

template <typename Body>
std::string runAlone(const Architecture& architecture, const char* kernel,
                     const std::vector<StridedView>& views, const Body& body) {
  Machine machine({architecture, kernel, 1, 1, seedOf(0), kOwnRuns.isTracing()});
  for (const StridedView& view : views) {
    const Reach reach = reachOf(0, view);
    machine.memory().add({0, reach.data, reach.bytes, false});
  }
  Core core(machine, 0, 0);
  {
    const Core::Running running(core);
    body();
  }
  core.finish();
  record(kOwnRuns, machine);
  return machine.report();
}

}  // namespace windlass::checked
