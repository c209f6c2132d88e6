// SPDX-License-Identifier: Apache-2.0
// What kernels and native/isa/ascend take of a target beside its instructions, over the emulator.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/isa/checked/instructions.h"
#include "native/isa/one_thread.h"
#include "windlass/kernel.h"

namespace windlass {

// Between two looks at a signal. `sharesCore`: the thread that will write it may need this core.
inline void relax(bool sharesCore) noexcept {
  if (sharesCore) {
    sched_yield();
  } else {
    cpuPause();
  }
}

// Lasts as long as a phase; stores are alike in all.
class PhaseScope {
 public:
  explicit PhaseScope(const Launch&) noexcept {}
};

// Lasts as long as this thread's core runs a library's kernel, which declares that order.
class DeclaredScope {
 public:
  explicit DeclaredScope(const checked::DeclaredOrder* order) noexcept {
    checked::Core::current().declare(order);
  }
  ~DeclaredScope() { checked::Core::current().declare(nullptr); }
  DeclaredScope(const DeclaredScope&) = delete;
  DeclaredScope& operator=(const DeclaredScope&) = delete;
};
// Lasts as long as an item of it.
class ItemScope {
 public:
  ItemScope(const Launch&, uint32_t block, uint32_t phase) noexcept {
    checked::Core::current().beginItem(block, phase);
  }
  ~ItemScope() { checked::Core::current().endItem(); }
  ItemScope(const ItemScope&) = delete;
  ItemScope& operator=(const ItemScope&) = delete;
};

namespace ascend {

// Where TASSIGN put the tile.
template <typename TileT>
uint32_t offsetOf(TileT& tile) {
  const auto* first = reinterpret_cast<const unsigned char*>(tile.data());
  return static_cast<uint32_t>(first - checked::Core::current().buffer());
}

// f16 of a power of two.
constexpr half halfOf(int exponent) {
  return {static_cast<uint16_t>((exponent + 15) << 10)};
}

// A macro-instruction that lacks the dtype does nothing but tell.
inline void refuse(const char* instruction, DType dtype) {
  checked::Core& core = checked::Core::current();
  core.require(false, checked::Rule::kElementType, core.begin(instruction),
               [dtype] { return std::string(nameOf(dtype)) + ", which it can't convert or fold"; });
}

}  // namespace ascend
}  // namespace windlass
