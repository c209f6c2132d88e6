// SPDX-License-Identifier: Apache-2.0
// What kernels did, by kernel, on targets that count it: as plain data, and how the runtime asks.
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

// Sums over all runs of a kernel, and over the cores that ran it.
struct KernelProfile {
  struct Engine {
    uint64_t instructions;
    uint64_t bytes;
    uint64_t busyCycles;
  };
  std::string kernel;
  uint64_t runs;           // of ranks
  uint64_t cores;          // that ran it, in all runs
  uint64_t cycles;         // of those, from a run's begin until the core's last engine is done
  uint64_t overlapCycles;  // in which a core's loads and its stores are both busy
  uint64_t flags;          // set
  uint64_t barriers;
  uint64_t notifies;
  uint64_t bufferBytes;  // of on-core memory, to the highest tile's end: the most of any core
  Engine engines[kEngines];
};

// Of this process. Its functions may be called by any thread.
struct Profiler {
  // From here on; forgets what was before. `traces`: keeps the instructions too.
  void (*start)(bool traces);
  std::vector<KernelProfile> (*kernels)();
  // JSON that Chrome's and Perfetto's viewers read.
  std::string (*trace)();
  // Takes the runs of kernels of libraries, whose copies of the emulator count them.
  const checked::RunRecorder* launches;
};

}  // namespace windlass
