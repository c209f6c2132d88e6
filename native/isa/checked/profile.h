// SPDX-License-Identifier: Apache-2.0
// Counters of this process's machines by kernel, and a trace of their pipes. The trace places the
// operations one after another on a time line of estimated cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/profile.h"
#include "native/isa/checked/machine.h"

namespace windlass::checked {

// The recorded spans of one run of a kernel.
struct TracedRun {
  std::string kernel;
  uint32_t ranks;
  uint32_t blocks;
  uint64_t start;  // on the time line
  std::vector<Span> spans;
};
// Returns JSON for the trace viewers of Chrome and Perfetto. Ranks are processes, the pipes of
// blocks are threads, and cycles are microseconds. The trace lacks `leftOut` runs.
std::string traceOf(const std::vector<TracedRun>& runs, uint64_t leftOut);

// Counters of a machine in one run, as plain data that libraries of kernels can pass to the
// process.
struct KernelRun {
  const char* kernel;
  uint32_t ranks;
  uint32_t blocks;
  bool traces;  // true: spans were recorded
  Counters counters;
  const Span* spans;
  uint64_t spanCount;
};
struct RunRecorder {
  // Returns true if machines must keep their spans.
  bool (*isTracing)();
  // Returns false if memory is short. The profile then lacks this run.
  bool (*add)(const KernelRun& run);
};
// Recorders of this process's profile: for its own kernels, and for kernels of libraries under
// names such as "launch of shift".
extern const RunRecorder kOwnRuns;
extern const RunRecorder kLaunches;

// Records a machine whose cores have finished.
void record(const RunRecorder& recorder, const Machine& machine);

extern const Profiler kProfiler;

}  // namespace windlass::checked
