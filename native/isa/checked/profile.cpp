// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/profile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace windlass::checked {
namespace {

static_assert(kPipes == kEngines, "an engine for each pipe");

struct Profile {
  // Maximum number of spans that are kept. A span has about 64 bytes.
  static constexpr size_t kMostSpans = size_t{1} << 17;

  bool traces = false;
  std::map<std::string, KernelProfile> kernels;
  std::vector<TracedRun> runs;
  size_t spans = 0;
  uint64_t leftOut = 0;
  uint64_t end = 0;  // end of the time line
};

struct GuardedProfile {
  std::mutex mutex;
  Profile profile;

  static GuardedProfile& ofProcess() {
    // Never deleted: threads may outlast main().
    static auto* const guarded = new GuardedProfile;
    return *guarded;
  }
};

// Calls use(profile) for this process's profile, on one thread at a time.
template <typename Use>
auto withProfile(const Use& use) {
  GuardedProfile& guarded = GuardedProfile::ofProcess();
  const std::lock_guard<std::mutex> lock(guarded.mutex);
  return use(guarded.profile);
}

void start(bool traces) {
  withProfile([&](Profile& profile) {
    profile = {};
    profile.traces = traces;
  });
}

std::vector<KernelProfile> kernels() {
  return withProfile([](const Profile& profile) {
    std::vector<KernelProfile> all;
    for (const auto& [name, kernel] : profile.kernels) all.push_back(kernel);
    return all;
  });
}

std::string trace() {
  return withProfile(
      [](const Profile& profile) { return traceOf(profile.runs, profile.leftOut); });
}

bool isTracing() {
  return withProfile([](const Profile& profile) {
    return profile.traces && profile.spans < Profile::kMostSpans;
  });
}

void addRun(const std::string& name, const KernelRun& given, Profile& profile) {
  TracedRun run = {name, given.ranks, given.blocks, 0, {}};
  if (given.traces) run.spans.assign(given.spans, given.spans + given.spanCount);
  KernelProfile& kernel = profile.kernels[name];
  kernel.kernel = name;
  kernel.runs += given.counters.cores / given.blocks;
  kernel.add(given.counters);
  if (!profile.traces) return;
  if (!given.traces || profile.spans >= Profile::kMostSpans) {
    ++profile.leftOut;
    return;
  }
  run.start = profile.end;
  profile.end += given.counters.cycles;
  profile.spans += run.spans.size();
  profile.runs.push_back(std::move(run));
}

bool add(const char* prefix, const KernelRun& run) {
  try {
    const std::string name = std::string(prefix) + run.kernel;
    withProfile([&](Profile& profile) { addRun(name, run, profile); });
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

constexpr Profiler kProfiler = {start, kernels, trace, &kLaunches};
constexpr RunRecorder kOwnRuns = {isTracing, [](const KernelRun& run) { return add("", run); }};
constexpr RunRecorder kLaunches = {isTracing,
                                   [](const KernelRun& run) { return add("launch of ", run); }};

void record(const RunRecorder& recorder, const Machine& machine) {
  const MachineConfig& config = machine.config();
  const std::vector<Span> spans = config.traces ? machine.spans() : std::vector<Span>();
  const KernelRun run = {config.kernel.c_str(), config.ranks, config.blocks, config.traces,
                         machine.counters(),    spans.data(), spans.size()};
  if (run.counters.cores > 0) recorder.add(run);
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
            "\",\"ph\":\"X\"" + row(span.origin.rank, rowOf(span.origin.core, span.pipe)) +
            ",\"ts\":" + std::to_string(run.start + span.start) +
            ",\"dur\":" + std::to_string(span.cycles) +
            ",\"args\":{\"number\":" + std::to_string(span.origin.number - span.origin.before) +
            ",\"bytes\":" + std::to_string(span.bytes) + "}");
    }
  }
  return "{\"traceEvents\":[" + events + "\n],\"otherData\":{\"kernels that it lacks\":" +
         std::to_string(leftOut) + "}}\n";
}

}  // namespace windlass::checked
