// SPDX-License-Identifier: Apache-2.0
// Rules of the architecture, and the breach of one.
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
  // What an instruction takes.
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

// As "tile-race"; and what to do about a breach of it.
const char* nameOf(Rule rule);
const char* hintOf(Rule rule);

// Which instruction of which core.
struct Origin {
  const char* instruction;
  uint64_t number;  // in the order of issue on its core, from 1; 0: it is no instruction
  uint32_t rank;
  uint32_t core;
  // Of a kernel that declares its items, within one: which, and the instructions before it.
  bool inItem = false;
  uint32_t block = 0;
  uint32_t phase = 0;
  uint64_t before = 0;
};
// As "instruction 7, TLOAD", or "instruction 7 of phase 0, TLOAD".
std::string describe(const Origin& origin);
// As "rank 1, block 0".
std::string placeOf(const Origin& origin);

struct Breach {
  Rule rule;
  std::string kernel;
  Origin origin;
  std::string what;  // the tile, flag or signal, and what is wrong with it

  // What and where, and what to do about it.
  std::string text() const;
};

}  // namespace windlass::checked
