// SPDX-License-Identifier: Apache-2.0
// State shared by the macro-instructions of one phase on sim: true if their stores stream.
#pragma once

#include "windlass/kernel.h"

namespace windlass {
namespace detail {

// State of the thread that runs a phase. In the static TLS block, an access is a load without a
// call. That block is small and never freed, so libraries that are loaded later use other TLS.
#if defined(WINDLASS_IN_KERNEL_LIBRARY)
extern thread_local bool phaseStreams;
#else
extern thread_local bool phaseStreams __attribute__((tls_model("initial-exec")));
#endif

inline bool streams(Stores stores) noexcept {
  return stores == Stores::kStreaming || (stores == Stores::kByOperation && phaseStreams);
}

}  // namespace detail

// Scope of a phase of the operation. The executors open one around each phase.
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
