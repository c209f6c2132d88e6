// SPDX-License-Identifier: Apache-2.0
// Counters of kernels on targets that support them, and the functions that read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace windlass {

// Engines of a core: scalar; vector; loads; stores.
constexpr int kEngines = 4;

namespace checked {
struct RunRecorder;
}

// Sums over cores.
struct KernelCounters {
  struct Engine {
    uint64_t instructions;
    uint64_t bytes;
    uint64_t busyCycles;
  };
  uint64_t cores = 0;
  uint64_t coreCycles = 0;  // from a run's start until the core's last engine ends
  uint64_t overlapCycles = 0;  // cycles in which a core's loads and stores are both busy
  uint64_t flags = 0;          // flags set
  uint64_t barriers = 0;
  uint64_t notifies = 0;
  uint64_t bufferBytes = 0;  // on-core memory up to the end of the highest tile: maximum over cores
  Engine engines[kEngines] = {};

  void add(const KernelCounters& other) {
    cores += other.cores;
    coreCycles += other.coreCycles;
    overlapCycles += other.overlapCycles;
    flags += other.flags;
    barriers += other.barriers;
    notifies += other.notifies;
    bufferBytes = std::max(bufferBytes, other.bufferBytes);
    for (int engine = 0; engine < kEngines; ++engine) {
      engines[engine].instructions += other.engines[engine].instructions;
      engines[engine].bytes += other.engines[engine].bytes;
      engines[engine].busyCycles += other.engines[engine].busyCycles;
    }
  }
};

// Counters over all runs of a kernel and over all cores that ran it.
struct KernelProfile : KernelCounters {
  std::string kernel;
  uint64_t runs = 0;  // one per rank and operation
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
