// SPDX-License-Identifier: Apache-2.0
// Rules of the architecture, and breaches of them.
#pragma once

#include <cstdint>
#include <string>

namespace windlass::checked {

enum class Rule : uint8_t {
  // Tiles in the unified buffer.
  kTileUnplaced,
  kTileMisaligned,
  kTileRow,
  kTileValidSize,
  kBufferOverflow,
  kTileOverlap,
  kTileUnwritten,
  kTileRace,
  // Operands of an instruction.
  kShape,
  kRowLimit,
  kElementType,
  kConversion,
  kRoundMode,
  // Flags between pipes.
  kFlagName,
  kWaitWithoutSet,
  kFlagSetTwice,
  kFlagLeftOver,
  kFlagTaken,
  // TPUT and TGET.
  kTransferShape,
  kTransferStride,
  kTransferTile,
  // Between ranks.
  kRanks,
  kOutsideMemory,
  kNotWritten,
  kMemoryRace,
  kNotifyUnreleased,
  kLoadUnacquired,
  kSignalAlignment,
  kSignalWriters,
  kPeerWait,
  kPhaseWaits,
};
constexpr int kRules = 31;

// Returns the rule's name, such as "tile-race".
const char* nameOf(Rule rule);
const char* hintOf(Rule rule);

// Identifies an instruction of a core.
struct Origin {
  const char* instruction;
  uint64_t number;  // order of issue on its core, from 1; 0: no instruction
  uint32_t rank;
  uint32_t core;
  // In an item that a kernel declares: its block and phase, and the number of instructions before
  // it.
  bool inItem = false;
  uint32_t block = 0;
  uint32_t phase = 0;
  uint64_t before = 0;
};
// Returns for example "instruction 7, TLOAD" or "instruction 7 of phase 0, TLOAD".
std::string describe(const Origin& origin);
// Returns for example "rank 1, block 0".
std::string placeOf(const Origin& origin);

struct Breach {
  Rule rule;
  std::string kernel;
  Origin origin;
  std::string what;  // the tile, flag or signal, and what is wrong with it

  // Describes the breach and its origin, and gives a hint how to fix it.
  std::string text() const;
};

}  // namespace windlass::checked
