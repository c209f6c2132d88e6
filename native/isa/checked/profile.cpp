// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/profile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace windlass::checked {
namespace {

static_assert(kPipes == kEngines, "an engine for each pipe");

struct Profile {
  // Spans that are kept, of some 64 bytes each.
  static constexpr size_t kMostSpans = size_t{1} << 17;

  std::mutex mutex;
  std::map<std::string, KernelProfile> kernels;
  bool traces = false;
  std::vector<TracedRun> runs;
  size_t spans = 0;
  uint64_t leftOut = 0;
  uint64_t end = 0;  // of the time line

  static Profile& ofProcess() {
    static Profile* const profile = new Profile;  // for threads that outlast main()
    return *profile;
  }
};

void start(bool traces) {
  Profile& profile = Profile::ofProcess();
  const std::lock_guard<std::mutex> lock(profile.mutex);
  profile.kernels.clear();
  profile.traces = traces;
  profile.runs.clear();
  profile.spans = 0;
  profile.leftOut = 0;
  profile.end = 0;
}

std::vector<KernelProfile> kernels() {
  Profile& profile = Profile::ofProcess();
  const std::lock_guard<std::mutex> lock(profile.mutex);
  std::vector<KernelProfile> all;
  for (const auto& [name, kernel] : profile.kernels) all.push_back(kernel);
  return all;
}

std::string trace() {
  Profile& profile = Profile::ofProcess();
  const std::lock_guard<std::mutex> lock(profile.mutex);
  return traceOf(profile.runs, profile.leftOut);
}

}  // namespace

constexpr Profiler kProfiler = {start, kernels, trace};

bool isTracing() {
  Profile& profile = Profile::ofProcess();
  const std::lock_guard<std::mutex> lock(profile.mutex);
  return profile.traces && profile.spans < Profile::kMostSpans;
}

void addToProfile(const Machine& machine) {
  const Counters counters = machine.counters();
  if (counters.cores == 0) return;
  const MachineConfig& config = machine.config();
  TracedRun run = {config.kernel, config.ranks, config.blocks, 0, {}};
  if (config.traces) run.spans = machine.spans();

  Profile& profile = Profile::ofProcess();
  const std::lock_guard<std::mutex> lock(profile.mutex);
  KernelProfile& kernel = profile.kernels[config.kernel];
  kernel.kernel = config.kernel;
  kernel.runs += counters.cores / config.blocks;
  kernel.cores += counters.cores;
  kernel.cycles += counters.coreCycles;
  kernel.overlapCycles += counters.overlapCycles;
  kernel.flags += counters.flags;
  kernel.barriers += counters.barriers;
  kernel.notifies += counters.notifies;
  kernel.bufferBytes = std::max(kernel.bufferBytes, counters.bufferBytes);
  for (size_t pipe = 0; pipe < kPipes; ++pipe) {
    kernel.engines[pipe].instructions += counters.engines[pipe].instructions;
    kernel.engines[pipe].bytes += counters.engines[pipe].bytes;
    kernel.engines[pipe].busyCycles += counters.engines[pipe].busyCycles;
  }
  if (!profile.traces) return;
  if (!config.traces || profile.spans >= Profile::kMostSpans) {
    ++profile.leftOut;
    return;
  }
  run.start = profile.end;
  profile.end += counters.cycles;
  profile.spans += run.spans.size();
  profile.runs.push_back(std::move(run));
}

std::string traceOf(const std::vector<TracedRun>& runs, uint64_t leftOut) {
  std::string events;
  const auto event = [&](const std::string& fields) {
    events += (events.empty() ? "\n{" : ",\n{") + fields + "}";
  };
  const auto rowOf = [](uint32_t block, Pipe pipe) {
    return block * kPipes + static_cast<size_t>(pipe);
  };
  const auto row = [](uint32_t rank, size_t thread) {
    return ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(thread);
  };
  uint32_t ranks = 0;
  uint32_t blocks = 0;
  for (const TracedRun& run : runs) {
    ranks = std::max(ranks, run.ranks);
    blocks = std::max(blocks, run.blocks);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    event("\"name\":\"process_name\",\"ph\":\"M\"" + row(rank, 0) + ",\"args\":{\"name\":\"rank " +
          std::to_string(rank) + "\"}");
    for (uint32_t block = 0; block < blocks; ++block) {
      for (const Pipe pipe : kEveryPipe) {
        event("\"name\":\"thread_name\",\"ph\":\"M\"" + row(rank, rowOf(block, pipe)) +
              ",\"args\":{\"name\":\"block " + std::to_string(block) + " " + nameOf(pipe) + "\"}");
      }
    }
  }
  for (const TracedRun& run : runs) {
    for (const Span& span : run.spans) {
      event(std::string("\"name\":\"") + span.origin.instruction + "\",\"cat\":\"" + run.kernel +
            "\",\"ph\":\"X\"" + row(span.origin.rank, rowOf(span.origin.block, span.pipe)) +
            ",\"ts\":" + std::to_string(run.start + span.start) +
            ",\"dur\":" + std::to_string(span.cycles) +
            ",\"args\":{\"number\":" + std::to_string(span.origin.number) +
            ",\"bytes\":" + std::to_string(span.bytes) + "}");
    }
  }
  return "{\"traceEvents\":[" + events + "\n],\"otherData\":{\"kernels that it lacks\":" +
         std::to_string(leftOut) + "}}\n";
}

}  // namespace windlass::checked
