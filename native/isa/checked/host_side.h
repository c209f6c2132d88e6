// SPDX-License-Identifier: Apache-2.0
// Target functions that the runtime calls besides kernels, on a2a3sim and a5sim.
#pragma once

#include <string>
#include <vector>

#include "native/isa/checked/session.h"
#include "native/isa/limits.h"
#include "native/isa/sim/loops.h"

namespace windlass {

#if defined(WINDLASS_TARGET_A5SIM)
static constexpr const Limits& kLimits = kA5SimLimits;
static const checked::Architecture& kArchitecture = checked::kA5;
#else
static constexpr const Limits& kLimits = kA2A3SimLimits;
static const checked::Architecture& kArchitecture = checked::kA2A3;
#endif

static constexpr const Profiler* kTargetProfiler = &checked::kProfiler;

class CoreSession : public checked::Session {
 public:
  CoreSession(const char* kernel, const Launch& launch, const InLine& line,
              const std::vector<Reach>& reach,
              const checked::RunRecorder& recorder = checked::kOwnRuns)
      : Session(kArchitecture, kernel, launch.ranks, line, reach, recorder) {}
};

// Runs `body` as a separate kernel that may touch the views. Returns nullptr or a text of its
// breaches, which is valid until the thread's next call.
template <typename Body>
inline const char* runAlone(const char* kernel, const std::vector<StridedView>& views,
                            const Body& body) {
  thread_local std::string broken;
  broken = checked::runAlone(kArchitecture, kernel, views, body);
  return broken.empty() ? nullptr : broken.c_str();
}

// Returns nullptr, or the reason why the value of an environment variable is invalid.
inline const char* targetRefusal() noexcept {
  const char* path = isaPathError();
  return path == nullptr ? checked::seedError() : path;
}

}  // namespace windlass
