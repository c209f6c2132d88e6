// SPDX-License-Identifier: Apache-2.0
// Features of A2/A3 and A5 as plain data: memory, element types of each instruction, conversions.
// Cycles are estimates from the rates in this file; none was measured on a device.
#pragma once

#include <cstdint>

#include "native/isa/checked/clock.h"
#include "native/isa/conversions.h"
#include "native/isa/limits.h"
#include "windlass/kernel.h"

namespace windlass::checked {

struct Rate {
  uint32_t startCycles;
  uint32_t bytesPerCycle;
};

struct Architecture {
  const char* name;
  uint32_t bufferBytes;
  // Part of the unified buffer that a cast may overwrite if it neither saturates nor gets a scratch
  // tile.
  uint32_t castScratchOffset;
  uint32_t castScratchBytes;
  // Most rows of a tile, and most of dimension 3 of a tensor, in one TLOAD or TSTORE. 0 means no
  // limit.
  uint32_t mostRows;
  uint32_t elements[kOps];            // sets of dtypes: detail::setOf() of native/isa/limits.h
  uint32_t conversions[kDTypeCount];  // sets of dtypes, by the source's dtype
  Rate rates[kPipes];

  bool has(Op op, DType dtype) const {
    return detail::isIn(elements[static_cast<int>(op)], dtype);
  }
  bool converts(DType from, DType to) const {
    return detail::isIn(conversions[static_cast<int>(from)], to);
  }
};

// Alignment in bytes of tiles and of their rows.
constexpr uint32_t kTileAlignment = 32;
constexpr uint32_t kFlagIds = 8;

extern const Architecture kA2A3;
extern const Architecture kA5;

}  // namespace windlass::checked
