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
  kMemoryRace,
  kNotifyUnreleased,
  kLoadUnacquired,
  kSignalAlignment,
  kSignalWriters,
  kPeerWait,
};
constexpr int kRules = 29;

// As "tile-race"; and what to do about a breach of it.
const char* nameOf(Rule rule);
const char* hintOf(Rule rule);

// Which instruction of which core.
struct Origin {
  const char* instruction;
  uint64_t number;  // in the order of issue on its core, from 1
  uint32_t rank;
  uint32_t block;
};
// As "instruction 7, TLOAD".
std::string describe(const Origin& origin);

struct Breach {
  Rule rule;
  std::string kernel;
  Origin origin;
  std::string what;  // the tile, flag or signal, and what is wrong with it

  std::string text() const;
};

}  // namespace windlass::checked
