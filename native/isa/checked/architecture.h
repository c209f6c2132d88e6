// SPDX-License-Identifier: Apache-2.0
// What A2/A3 and A5 have, as plain data: memory, element types of each instruction, conversions.
// Cycles are an estimate by rates that stand here; none was measured on a device.
#pragma once

#include <cstdint>

#include "native/isa/checked/clock.h"
#include "windlass/kernel.h"

namespace windlass::checked {

// A set of dtypes.
class DTypes {
 public:
  constexpr DTypes() = default;
  template <typename... D>
  constexpr explicit DTypes(D... dtypes)
      : bits_(((uint32_t{1} << static_cast<int>(dtypes)) | ...)) {}

  constexpr bool has(DType dtype) const { return (bits_ >> static_cast<int>(dtype) & 1) != 0; }
  constexpr DTypes operator|(DTypes other) const {
    DTypes both;
    both.bits_ = bits_ | other.bits_;
    return both;
  }

 private:
  uint32_t bits_ = 0;
};

// Instructions that take some element types alone.
enum class Op : uint8_t {
  kMove,  // TLOAD, TSTORE, TPUT, TGET, TMOV
  kAtomicAdd,
  kAdd,
  kSub,
  kMul,
  kMax,
  kMin,
  kAddScalar,
  kMulScalar,
  kDivScalar,
  kExpandScalar,
};
constexpr int kOps = 11;

struct Rate {
  uint32_t startCycles;
  uint32_t bytesPerCycle;
};

struct Architecture {
  const char* name;
  uint32_t bufferBytes;
  // Of the unified buffer: what casts that neither saturate nor get a tile for it may overwrite.
  uint32_t castScratchOffset;
  uint32_t castScratchBytes;
  // Rows of a tile, and dimension 3 of a tensor, of one TLOAD or TSTORE; 0: any.
  uint32_t mostRows;
  DTypes elements[kOps];
  DTypes conversions[kDTypeCount];  // by the source's dtype
  Rate rates[kPipes];

  bool has(Op op, DType dtype) const { return elements[static_cast<int>(op)].has(dtype); }
  bool converts(DType from, DType to) const { return conversions[static_cast<int>(from)].has(to); }
};

// Of tiles and their rows.
constexpr uint32_t kTileAlignment = 32;
constexpr uint32_t kFlagIds = 8;

extern const Architecture kA2A3;
extern const Architecture kA5;

}  // namespace windlass::checked
