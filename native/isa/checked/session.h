// SPDX-License-Identifier: Apache-2.0
// The cores of one rank in one operation, as the in-line executor runs them. The operation's ranks
// in this process share one machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/isa/checked/core.h"
#include "native/isa/checked/machine.h"
#include "native/isa/checked/profile.h"
#include "windlass/kernel.h"

namespace windlass::checked {

// Breaches of an operation so far.
struct Verdict {
  std::string broken;    // one line for each breach; empty: no breach
  uint32_t faultyRank = 0;  // rank of the core with the first breach
};

class Session {
 public:
  static constexpr bool kChecks = true;
  using Order = DeclaredOrder;

  // `line` describes a core of the rank. `reach` lists the memory that the kernel may touch:
  // windows, which every rank lists alike, and the rank's own memory. `recorder` receives the
  // counters.
  Session(const Architecture& architecture, const char* kernel, uint32_t ranks, const InLine& line,
          const std::vector<Reach>& reach, const RunRecorder& recorder = kOwnRuns);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Makes the calling thread run this core during the lifetime of the result.
  Core::Running run(uint32_t core) { return Core::Running(*cores_[core]); }
  // Thrown by a core whose kernel waits when all waits have to end. Such a core does not continue.
  using Ended = Core::Ended;
  bool hasEnded(uint32_t core) const { return cores_[core]->hasEnded(); }
  // Returns the breaches so far. Only one thread may call it. Set `over` if all cores have ended;
  // otherwise they may continue.
  Verdict verdict(bool over);

 private:
  std::shared_ptr<Machine> machine_;
  std::vector<Region> own_;
  std::vector<std::unique_ptr<Core>> cores_;
};

// Returns the memory from the first element of a view to its last.
Reach reachOf(uint32_t rank, const StridedView& view);

// Returns the seed that orders the pipes in an operation: WINDLASS_PIPE_SEED, or the operation's
// sequence number.
uint64_t seedOf(uint32_t sequence);
// Returns nullptr, or an error if WINDLASS_PIPE_SEED is not a 64-bit number.
const char* seedError() noexcept;
// Result of parsing WINDLASS_PIPE_SEED, with the error for seedError(). The value may be nullptr or
// "".
struct SeedChoice {
  bool isGiven;
  uint64_t seed;
  char error[128];  // "": no error
};
SeedChoice chooseSeed(const char* request) noexcept;

// Runs `body` as a kernel of one rank with one core. It may touch the memory of the views as its
// own. Returns "" or the report of its breaches.
template <typename Body>
std::string runAlone(const Architecture& architecture, const char* kernel,
                     const std::vector<StridedView>& views, const Body& body) {
  Machine machine({architecture, kernel, 1, 1, seedOf(0), kOwnRuns.isTracing()});
  for (const StridedView& view : views) machine.memory().add(reachOf(0, view));
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
