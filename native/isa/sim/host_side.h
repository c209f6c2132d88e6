// SPDX-License-Identifier: Apache-2.0
// Target functions that the runtime calls besides kernels, on sim and on targets whose devices run
// the kernels.
#pragma once

#include <vector>

#include "native/isa/limits.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/types.h"
#include "windlass/kernel.h"

namespace windlass {

struct Profiler;

#if defined(WINDLASS_TARGET_A2A3)
static constexpr const Limits& kLimits = kA2A3Limits;
#elif defined(WINDLASS_TARGET_A5)
static constexpr const Limits& kLimits = kA5Limits;
#elif defined(WINDLASS_TARGET_CUDA)
static constexpr const Limits& kLimits = kCudaLimits;
#else
static constexpr const Limits& kLimits = kSimLimits;
#endif
static constexpr const Profiler* kTargetProfiler = nullptr;  // nothing is counted

// Sessions have no state: cores share only memory.
class CoreSession {
 public:
  static constexpr bool kChecks = false;
  struct Running {};
  struct Order {};

  CoreSession(const char*, const Launch&, const InLine&, const std::vector<Reach>&) {}
  Running run(uint32_t) { return {}; }
};

// Does nothing: this target does not check the order that a library's kernel declares.
struct DeclaredScope {
  explicit DeclaredScope(const void*) noexcept {}
};
// Scope of one item. Its end reports the first misuse of a tile within the item.
class ItemScope {
 public:
  ItemScope(const Launch& launch, uint32_t, uint32_t) noexcept : launch_(launch) {}
  ~ItemScope() {
    TileMisuse first;
    const Misuses* misuses = launch_.call->misuses;
    if (detail::takeMisuse(&first) && misuses != nullptr)
      misuses->tell(misuses, {Misuse::kTile, 0, 0, first});
  }
  ItemScope(const ItemScope&) = delete;
  ItemScope& operator=(const ItemScope&) = delete;

 private:
  const Launch& launch_;
};

// Returns nullptr, or the reason why the value of an environment variable is invalid.
inline const char* targetRefusal() noexcept {
  return isaPathError();
}

}  // namespace windlass
