// SPDX-License-Identifier: Apache-2.0
// Target declarations besides instructions for kernels and native/isa/ascend, over the emulator.
#pragma once

#include <cstdint>
#include <string>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/isa/checked/instructions.h"
#include "native/isa/one_thread.h"
#include "windlass/kernel.h"

namespace windlass {

// Scope of a phase. Does nothing, because stores are the same in all phases.
class PhaseScope {
 public:
  explicit PhaseScope(const Launch&) noexcept {}
};

// Scope in which this thread's core runs a library's kernel with the declared order.
class DeclaredScope {
 public:
  explicit DeclaredScope(const checked::DeclaredOrder* order) noexcept {
    checked::Core::current().declare(order);
  }
  ~DeclaredScope() { checked::Core::current().declare(nullptr); }
  DeclaredScope(const DeclaredScope&) = delete;
  DeclaredScope& operator=(const DeclaredScope&) = delete;
};
// Scope of one item of such a kernel.
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

// Offset that TASSIGN gave the tile.
template <typename TileT>
uint32_t offsetOf(TileT& tile) {
  const auto* first = reinterpret_cast<const unsigned char*>(tile.data());
  return static_cast<uint32_t>(first - checked::Core::current().buffer());
}

// Returns 2^exponent as f16.
constexpr half halfOf(int exponent) {
  return {static_cast<uint16_t>((exponent + 15) << 10)};
}

// Reports a macro-instruction that does not support the dtype. It has no other effect.
inline void refuse(const char* instruction, DType dtype) {
  checked::Core& core = checked::Core::current();
  core.require(false, checked::Rule::kElementType, core.begin(instruction),
               [dtype] { return std::string(nameOf(dtype)) + ", which it can't convert or fold"; });
}

}  // namespace ascend
}  // namespace windlass
