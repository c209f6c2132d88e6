// SPDX-License-Identifier: Apache-2.0
// Counters of kernels on targets that support them, and the functions that read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace windlass {

// Engines of a core: scalar; vector; loads; stores.
constexpr int kEngines = 4;

namespace checked {
struct RunRecorder;
}

// Sums over all runs of a kernel and over all cores that ran it.
struct KernelProfile {
  struct Engine {
    uint64_t instructions;
    uint64_t bytes;
    uint64_t busyCycles;
  };
  std::string kernel;
  uint64_t runs;           // one per rank and operation
  uint64_t cores;          // cores that ran it, over all runs
  uint64_t cycles;         // of those cores, from a run's start until the core's last engine ends
  uint64_t overlapCycles;  // cycles in which a core's loads and stores are both busy
  uint64_t flags;          // flags set
  uint64_t barriers;
  uint64_t notifies;
  uint64_t bufferBytes;  // on-core memory up to the end of the highest tile: maximum over cores
  Engine engines[kEngines];
};

// Profiler of this process. Its functions are thread-safe.
struct Profiler {
  // Restarts the counters. `traces` also records the instructions.
  void (*start)(bool traces);
  std::vector<KernelProfile> (*kernels)();
  // Returns JSON for the trace viewers of Chrome and Perfetto.
  std::string (*trace)();
  // Records runs of kernels in other libraries, whose copies of the emulator count them.
  const checked::RunRecorder* launches;
};

}  // namespace windlass
