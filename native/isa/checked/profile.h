// SPDX-License-Identifier: Apache-2.0
// What the machines of this process have counted, by kernel, and what their pipes did: each
// machine's operation follows the one before on a time line of estimated cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/profile.h"
#include "native/isa/checked/machine.h"

namespace windlass::checked {

// The spans of one kernel's run, as they are kept.
struct TracedRun {
  std::string kernel;
  uint32_t ranks;
  uint32_t blocks;
  uint64_t start;  // on the time line
  std::vector<Span> spans;
};
// As JSON that Chrome's and Perfetto's viewers read: a process for each rank, a thread for each
// pipe of its blocks, a cycle as a microsecond. `leftOut` counts runs that it lacks.
std::string traceOf(const std::vector<TracedRun>& runs, uint64_t leftOut);

// What a machine counted in one run, as plain data: libraries of kernels hand it over.
struct KernelRun {
  const char* kernel;
  uint32_t ranks;
  uint32_t blocks;
  bool traces;  // it kept its spans
  Counters counters;
  const Span* spans;
  uint64_t spanCount;
};
struct RunRecorder {
  // Whether machines are to keep their spans.
  bool (*isTracing)();
  // False: there is no memory for it, and the profile lacks it.
  bool (*add)(const KernelRun& run);
};
// Of this process's profile: of its own kernels; and of those of libraries, as "launch of shift".
extern const RunRecorder kOwnRuns;
extern const RunRecorder kLaunches;

// A machine whose cores have finished.
void record(const RunRecorder& recorder, const Machine& machine);

extern const Profiler kProfiler;

}  // namespace windlass::checked
