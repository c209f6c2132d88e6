// SPDX-License-Identifier: Apache-2.0
// A core's unified buffer: its bytes, and for each block of 32 of them who touched it last, by
// which an instruction is held against those before it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/isa/checked/architecture.h"
#include "native/isa/checked/breach.h"
#include "native/isa/checked/clock.h"
#include "native/isa/checked/operands.h"

namespace windlass::checked {

// An instruction as it is issued: on which pipe of a core, after what.
struct Issue {
  Pipe pipe;
  const Clock& clock;
  size_t firstPipe;  // number in the clock of the core's first pipe
  Origin origin;

  uint64_t tick(Pipe of) const { return clock[firstPipe + static_cast<size_t>(of)]; }
};

struct Clash {
  Rule rule;
  std::string what;
};

class UnifiedBuffer {
 public:
  // Filled with what `seed` makes. Throws std::bad_alloc.
  UnifiedBuffer(const Architecture& architecture, uint64_t seed);

  unsigned char* data() { return bytes_.data(); }

  // Records that the instruction reads, or writes, the tile's valid part, which lies in the buffer;
  // says how that breaks a rule.
  std::optional<Clash> read(const TileRef& tile, const Issue& issue);
  std::optional<Clash> write(const TileRef& tile, const Issue& issue);

 private:
  struct Touch {
    uint64_t tick;  // 0: never
    Origin origin;
  };
  // All zero where no instruction has touched it.
  struct Block {
    Touch written;
    Pipe writer;
    uint32_t tile;
    Touch read[kPipes];
  };

  template <typename Look>
  std::optional<Clash> each(const TileRef& tile, Look&& look);

  struct Unmap {
    size_t bytes;
    void operator()(Block* blocks) const;
  };
  static std::unique_ptr<Block[], Unmap> untouched(size_t count);

  std::vector<unsigned char> bytes_;
  std::unique_ptr<Block[], Unmap> blocks_;
};

}  // namespace windlass::checked
