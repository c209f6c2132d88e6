// SPDX-License-Identifier: Apache-2.0
// What the macro-instructions of one phase have in common on sim: whether their stores stream.
#pragma once

#include "windlass/kernel.h"

namespace windlass {
namespace detail {

// Of the thread that runs a phase. In the static block: a load, without a call. That block is small
// and is never given back, so libraries that come while the process runs have theirs elsewhere.
#if defined(WINDLASS_IN_KERNEL_LIBRARY)
extern thread_local bool phaseStreams;
#else
extern thread_local bool phaseStreams __attribute__((tls_model("initial-exec")));
#endif

inline bool streams(Stores stores) noexcept {
  return stores == Stores::kStreaming || (stores == Stores::kByOperation && phaseStreams);
}

}  // namespace detail

// Lasts as long as a phase of the operation; the executors open one around each.
class PhaseScope {
 public:
  explicit PhaseScope(const Launch& launch) noexcept : streams_(launch.streams) {
    if (streams_) detail::phaseStreams = true;
  }
  ~PhaseScope() {
    if (streams_) detail::phaseStreams = false;
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  const bool streams_;
};

}  // namespace windlass
